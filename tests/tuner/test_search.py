from collections.abc import Sequence

from tuner_nests import scale_nest
from tuner_templates import TARGET, GridTemplate, SeededTemplate, cost_us, flat, trial_of

from kernel_gen.codegen.template import Template
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.records import Trial
from kernel_gen.schedule.schedule import Schedule
from tuner.nests.search import NestSearch


def search(templates: Sequence[Template], history: Sequence[Trial] = ()) -> NestSearch:
    return NestSearch(scale_nest(), TARGET, templates, flat, seed=1, history=history)


def run(subject: NestSearch, trials: int, batch: int = 4) -> list[Trial]:
    done: list[Trial] = []
    while len(done) < trials:
        proposals = subject.propose(min(batch, trials - len(done)))
        if not proposals:
            break
        for proposal in proposals:
            trial = trial_of(proposal)
            subject.record(trial)
            done.append(trial)
    return done


def test_the_seed_comes_first_and_the_search_improves_on_it() -> None:
    subject = search([GridTemplate()])
    done = run(subject, 60)
    assert dict(done[0].point) == {"a0": 0, "a1": 0, "a2": 0}
    assert subject.best is not None
    assert subject.best.median_us is not None
    assert subject.best.median_us <= 16.0
    assert subject.measured == 60


def test_no_point_is_proposed_twice_and_refused_ones_never() -> None:
    done = run(search([GridTemplate(), GridTemplate("other", axes=2)]), 80)
    points = [(trial.template, trial.point) for trial in done]
    assert len(set(points)) == len(points) == 80
    assert not any(dict(point)["a0"] == 1 for _, point in points)
    assert {template for template, _ in points} == {"grid", "other"}


def test_small_spaces_are_exhausted_best_predicted_first() -> None:
    def predict(nest: LoopNest, schedule: Schedule, target: Target) -> float:
        return cost_us(schedule)

    small = GridTemplate(axes=1, choices=12)
    subject = NestSearch(scale_nest(), TARGET, [small], predict)
    done = run(subject, 100)
    assert len(done) == 11
    assert dict(done[1].point) == {"a0": 7}
    assert subject.propose(4) == []


def test_failures_do_not_become_the_best() -> None:
    subject = search([GridTemplate()])
    (proposal,) = subject.propose(1)
    subject.record(trial_of(proposal, failed=True))
    assert subject.best is None
    assert (subject.tried, subject.measured) == (1, 0)


def test_stored_trials_are_measured_again_first() -> None:
    first = search([GridTemplate()])
    done = run(first, 60)
    again = search([GridTemplate()], history=done)
    assert again.best is None
    proposals = again.propose(2)
    assert first.best is not None
    assert proposals[0].point == first.best.point


def test_stored_trials_of_another_space_are_ignored() -> None:
    done = run(search([GridTemplate()]), 10)
    other = search([GridTemplate(axes=2)], history=done)
    assert dict(other.propose(1)[0].point) == {"a0": 0, "a1": 0}


def test_a_nest_that_no_template_takes_is_empty() -> None:
    subject = search([GridTemplate(refuses=True)])
    assert subject.is_empty
    assert subject.propose(3) == []


def test_the_schedule_of_a_trial_can_be_had_again() -> None:
    subject = search([GridTemplate()])
    (proposal,) = subject.propose(1)
    assert subject.schedule_of(trial_of(proposal)) == proposal.schedule


def test_close_followers_are_known_in_order() -> None:
    subject = search([GridTemplate()])
    done = sorted(run(subject, 40), key=lambda trial: trial.median_us or 0.0)
    best, second, third = done[:3]
    assert best.median_us is not None
    followers = subject.runners_up(2)
    assert subject.best is not None
    assert [t.median_us for t in followers] == [second.median_us, third.median_us]
    assert subject.best not in followers
    assert all((t.median_us or 0.0) <= 1.5 * best.median_us for t in subject.runners_up(40))


def test_a_template_without_a_trial_is_still_hoped_of() -> None:
    def predict(nest: LoopNest, schedule: Schedule, target: Target) -> float:
        return {"grid": 3.0, "other": 2.0}[schedule.template]

    templates = [GridTemplate(), GridTemplate("other")]
    subject = NestSearch(scale_nest(), TARGET, templates, predict)
    assert subject.untried_us() == 2.0
    run(subject, 1)
    assert subject.untried_us() == 2.0
    run(subject, 1)
    assert subject.untried_us() is None


def cost_us_of(trial: Trial) -> float:
    assert trial.quiet_us is not None
    return trial.quiet_us


def by_cost(nest: LoopNest, schedule: Schedule, target: Target) -> float:
    """A cost model that knows all."""
    return cost_us(schedule)


def test_the_second_trial_is_where_the_model_leads_to() -> None:
    subject = NestSearch(scale_nest(), TARGET, [GridTemplate()], by_cost, seed=1)
    first, second = run(subject, 2, batch=1)
    assert dict(first.point) == {"a0": 0, "a1": 0, "a2": 0}
    assert cost_us_of(second) < 0.3 * cost_us_of(first)
    assert subject.promised_us == cost_us_of(second)


def test_the_best_predicted_of_a_templates_seeds_comes_first() -> None:
    subject = NestSearch(scale_nest(), TARGET, [SeededTemplate()], by_cost)
    done = run(subject, 4, batch=1)
    assert dict(done[0].point) == {"a0": 6, "a1": 6, "a2": 6}
    seeds = [dict(seed) for seed in SeededTemplate().space(scale_nest(), TARGET).seeds]
    far = {"a0": 0, "a1": 0, "a2": 0}
    assert far in seeds
    assert all(dict(trial.point) != far for trial in done)  # far behind what was climbed to


def test_a_model_that_tells_nothing_leaves_the_templates_order() -> None:
    done = run(search([SeededTemplate()]), 3, batch=1)
    seeds = [dict(seed) for seed in SeededTemplate().space(scale_nest(), TARGET).seeds]
    assert [dict(trial.point) for trial in done] == seeds


def test_the_samplers_suggestions_far_behind_the_best_come_last() -> None:
    subject = NestSearch(scale_nest(), TARGET, [GridTemplate()], by_cost, seed=1)
    done = run(subject, 40)
    assert len(done) == 40
    late = [cost_us_of(trial) for trial in done[8:]]
    assert sum(us <= 1.5 * 10.0 for us in late) > len(late) // 2


def test_a_template_is_judged_by_its_best_starting_point() -> None:
    def predict(nest: LoopNest, schedule: Schedule, target: Target) -> float:
        return cost_us(schedule) * (4 if schedule.template == "grid" else 1)

    both = [SeededTemplate("grid"), SeededTemplate("seeded")]
    kept = NestSearch(scale_nest(), TARGET, both, predict)
    assert {trial.template for trial in run(kept, 2)} == {"grid", "seeded"}
    behind = [GridTemplate(), SeededTemplate("seeded")]  # 157 · 4 of one start, 13 of three
    dropped = NestSearch(scale_nest(), TARGET, behind, predict)
    assert {trial.template for trial in run(dropped, 30)} == {"seeded"}


def test_what_suits_a_like_nest_is_tried_next_and_once() -> None:
    subject = search([GridTemplate()])
    point = (("a0", 7), ("a1", 7), ("a2", 6))
    subject.suggest(("grid", point))
    subject.suggest(("grid", (("a0", 99), ("a1", 7), ("a2", 6))))
    subject.suggest(("another", point))
    assert subject.has_suggestion
    first, second = subject.propose(2)
    assert first.point == point != second.point
    assert not subject.has_suggestion
    assert not subject.is_new(("grid", point))

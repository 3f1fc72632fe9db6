"""The Ascend target: chip descriptions (`chips`) and the simulator (`sim`)."""

"""`python -m graph_autofusion.cli` is the `gaf` command."""

from graph_autofusion.cli import main

main()

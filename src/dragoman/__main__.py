"""`python -m dragoman` is `dragoman`."""

from .cli.main import main

main(prog_name="dragoman")

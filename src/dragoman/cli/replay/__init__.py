"""`dragoman replay`: runs recordings through the installed version, or serves them to an agent."""

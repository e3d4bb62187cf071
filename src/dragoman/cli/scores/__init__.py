"""`dragoman scores`: how reliable each model was."""

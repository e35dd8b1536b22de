"""The command line: one small file a command, which reads options, makes one call and prints.

`main` lists the commands and imports each when it is typed; `output` and `signals` serve all of them.
"""

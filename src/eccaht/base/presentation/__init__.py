"""How pages and figures look: shared by everything that draws or writes one."""

"""Who may do what: tokens, the login of the page, limits, and a record of every action."""

"""The steps from one version of the tables to the next, for alembic: a file each, never changed once it was released.

A change of `schema.py` needs the next one, v0002_NAME.py:

    from alembic import op

    revision, down_revision = "0002", "0001"

    def upgrade() -> None:
        op.add_column("plants", sa.Column("note", sa.String, nullable=False, server_default=""))

SQLite adds columns and tables; for all else use `with op.batch_alter_table("plants") as table`. A column that existing
rows must fill needs a `server_default`, in `schema.py` too.
"""

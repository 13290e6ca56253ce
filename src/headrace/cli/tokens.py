"""`headrace token`: what programs and people show to the server, created, listed and revoked."""

from __future__ import annotations

from datetime import datetime, timedelta

import click
import msgspec
from rich.text import Text

from headrace import duration
from headrace.cli.exits import Ended, Exit, one_line
from headrace.cli.session import Session, in_session
from headrace.cli.settings import command, group
from headrace.cli.table import Column
from headrace.cli.values import SECONDS
from headrace.tokens import Scope, Token

COLUMNS = (
    Column(name="id"),
    Column(name="label"),
    Column(name="scopes"),
    Column(name="tenant", rank=3, usual="every"),
    Column(name="state"),
    Column(name="used", rank=1),
)


class TokenRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A token. Its secret is told once, when it is created."""

    id: str
    label: str
    tenant: str | None
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    used_at: datetime | None


class NewRecord(TokenRecord, frozen=True, kw_only=True):
    secret: str


class ListRecord(msgspec.Struct, frozen=True, kw_only=True):
    tokens: tuple[TokenRecord, ...]


class RevokedRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    revoked: bool


@group(
    "token",
    examples=(
        "headrace token create web --scope submit --scope read --tenant acme",
        "headrace token list",
    ),
)
def token() -> None:
    """Manage the tokens that programs and people show to headrace serve.

    A token is good for its scopes, and for one tenant or for all. Only a hash of it is stored.
    """


@command(
    "create",
    examples=(
        "headrace token create web --scope submit --tenant acme",
        "headrace token create ada --scope read --scope operate --expires 30d",
    ),
)
@click.argument("label")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    required=True,
    type=click.Choice([scope.value for scope in Scope]),
    help="What it is good for; may be repeated.",
)
@click.option("--expires", type=SECONDS, metavar="DURATION", help="For so long.  [default: ever]")
@in_session(create=True)
async def create(
    session: Session, *, label: str, scopes: tuple[str, ...], expires: float | None
) -> Exit:
    """Create a token and print its secret: it is told this once.

    With --tenant it acts for this tenant, and without for all of them.
    """
    until = None
    if expires is not None:
        until = session.jobs.clock.now() + timedelta(seconds=expires)
    made = await session.jobs.create_token(label, scopes, expires_at=until)
    if session.out.as_json:
        session.out.document(
            NewRecord(**msgspec.structs.asdict(_record(made.token)), secret=made.secret)
        )
    else:
        session.out.text(made.secret)
    return Exit.OK


@command("list", examples=("headrace token list", "headrace token list --json"))
@in_session()
async def list_tokens(session: Session) -> Exit:
    """List tokens, those that were revoked or have expired, too."""
    found = await session.jobs.list_tokens()
    if session.out.as_json:
        session.out.document(ListRecord(tokens=tuple(_record(one) for one in found)))
    elif not found:
        session.out.text("no tokens")
    else:
        now = session.jobs.clock.now()
        session.out.table(COLUMNS, [_row(one, now) for one in found])
    return Exit.OK


@command("revoke", examples=("headrace token revoke 3f0c2f7e4a53",))
@click.argument("token_id", metavar="ID")
@in_session()
async def revoke(session: Session, *, token_id: str) -> Exit:
    """Revoke a token: within a second no server takes it any more."""
    revoked = await session.jobs.revoke_token(token_id)
    if not revoked and all(one.id != token_id for one in await session.jobs.list_tokens()):
        raise Ended(Exit.NOT_FOUND, "TOKEN_NOT_FOUND", f"there is no token {one_line(token_id)}")
    if session.out.as_json:
        session.out.document(RevokedRecord(id=token_id, revoked=revoked))
    else:
        told = "is revoked" if revoked else "was good for nothing already"
        session.out.text(f"token {token_id} {told}")
    return Exit.OK


for _command in (create, list_tokens, revoke):
    token.add_command(_command)


def _record(one: Token) -> TokenRecord:
    return TokenRecord(**{name: getattr(one, name) for name in TokenRecord.__struct_fields__})


def _row(one: Token, now: datetime) -> tuple[Text | str, ...]:
    """The cells in the order of COLUMNS."""
    if one.revoked_at is not None:
        state = Text("revoked", "red")
    elif not one.is_valid(now):
        state = Text("expired", "yellow")
    elif one.expires_at is None:
        state = Text("good", "green")
    else:
        state = Text(f"good, {duration.age(one.expires_at, now)}", "green")
    return (
        Text(one.id, "bold"),
        one_line(one.label),
        ", ".join(one.scopes),
        one.tenant or "every",
        state,
        "never" if one.used_at is None else duration.ago(one.used_at, now),
    )

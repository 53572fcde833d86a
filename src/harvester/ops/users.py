"""People and their roles. Every change is audited; passwords never are."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit
from harvester.ops.models import Role, User

#: Who asks whether another admin stays must be the only one who asks; "admi".
_ADMINS_LOCK = 0x61646D69


class WrongField(InvalidInput):
    """What was given for a login cannot be used.

    Attributes:
        field: what is wrong, for forms.
    """

    def __init__(self, field: str, words: str) -> None:
        super().__init__(words)
        self.field = field


class NameTaken(Conflict):
    """Somebody has this login already, in the same or other letters: two of them could not be told apart."""

    field = "username"


def create(actor: Actor, username: str, password: str, role: Role, *, email: str = "") -> User:
    """Give a person a login."""
    user = User(username=username.strip(), email=email.strip(), role=role, is_staff=True)
    _set_password(user, password)
    try:
        user.full_clean(exclude=["password"], validate_unique=False, validate_constraints=False)
    except ValidationError as problem:
        raise WrongField(next(iter(problem.message_dict)), " ".join(problem.messages)) from None
    try:
        with transaction.atomic():
            _require_free(user.username)
            user.save(force_insert=True)
            audit.record(actor, "USER_CREATED", "user", user.pk, detail={"role": role})
    except IntegrityError:
        raise _taken(user.username) from None
    return user


def set_role(actor: Actor, username: str, role: Role) -> User:
    """Change what a person may do, from their next request on."""
    with transaction.atomic():
        _count_admins_alone()
        user = _locked(username)
        _keep_an_admin(user, stays=role == Role.ADMIN)
        before, user.role = user.role, role
        user.save(update_fields=["role"])
        audit.record(actor, "USER_ROLE_CHANGED", "user", user.pk, changed=["role"], detail={"from": before, "to": role})
    return user


def set_password(actor: Actor, username: str, password: str) -> User:
    """Give a person a new password; their sessions end."""
    with transaction.atomic():
        user = _locked(username)
        _set_password(user, password)
        user.save(update_fields=["password"])
        audit.record(actor, "USER_PASSWORD_CHANGED", "user", user.pk, changed=["password"])
    return user


def set_active(actor: Actor, username: str, *, active: bool) -> User:
    """Let a person in again, or keep them out; nobody is ever deleted, the audit trail names them."""
    with transaction.atomic():
        _count_admins_alone()
        user = _locked(username)
        _keep_an_admin(user, stays=active)
        user.is_active = active
        user.save(update_fields=["is_active"])
        verb = "USER_ACTIVATED" if active else "USER_DEACTIVATED"
        audit.record(actor, verb, "user", user.pk, changed=["is_active"])
    return user


def _require_free(username: str) -> None:
    known = User.objects.filter(username__iexact=username).first()
    if known is not None:
        raise _taken(known.username)


def _taken(username: str) -> NameTaken:
    return NameTaken(f"There is a user named {username} already.")


def _locked(username: str) -> User:
    user = User.objects.select_for_update().filter(username=username).first()
    if user is None:
        raise NotFound(f"There is no user named {username}; `harvester user list` shows them all.")
    return user


def _set_password(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as problem:
        raise WrongField("password", " ".join(problem.messages)) from None
    user.set_password(password)


def _count_admins_alone() -> None:
    """Two admins who take away each other's role at once would each see the other stay."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADMINS_LOCK])


def _keep_an_admin(user: User, *, stays: bool) -> None:
    """Nobody may lock everybody out."""
    if stays or not user.may(Role.ADMIN):
        return
    if not User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=user.pk).exists():
        raise Conflict(f"{user.username} is the last active admin; make somebody else an admin first.")

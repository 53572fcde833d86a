"""Users and their roles. Every change is audited, without passwords."""

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection, transaction

from harvester.kernel.actor import Actor
from harvester.kernel.errors import Conflict, InvalidInput, NotFound
from harvester.ops import audit
from harvester.ops.models import Role, User

#: Serializes the checks that an admin remains; "admi".
_ADMINS_LOCK = 0x61646D69


class WrongField(InvalidInput):
    """A field of a user is invalid.

    Attributes:
        field: its name, for forms.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class NameTaken(Conflict):
    """A user has this name already, possibly in another case: people could not distinguish the two."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.field = "username"


def create(actor: Actor, username: str, password: str, role: Role, *, email: str = "") -> User:
    """Create a user."""
    user = User(username=username.strip(), email=email.strip(), role=role, is_staff=True)
    _set_password(user, password)
    try:
        user.full_clean(exclude=["password"], validate_unique=False, validate_constraints=False)
    except ValidationError as problem:
        raise WrongField(next(iter(problem.message_dict)), " ".join(problem.messages)) from None
    try:
        with transaction.atomic():
            existing = User.objects.filter(username__iexact=user.username).first()
            if existing is not None:
                raise _taken(existing.username)
            user.save(force_insert=True)
            audit.record(actor, "USER_CREATED", "user", user.pk, detail={"role": role})
    except IntegrityError:
        raise _taken(user.username) from None
    return user


def set_role(actor: Actor, username: str, role: Role) -> User:
    """Change the role of a user, from the next request on."""
    with transaction.atomic():
        _lock_admins()
        user = _locked(username)
        _keep_an_admin(user, stays=role == Role.ADMIN)
        before, user.role = user.role, role
        user.save(update_fields=["role"])
        audit.record(actor, "USER_ROLE_CHANGED", "user", user.pk, changed=["role"], detail={"from": before, "to": role})
    return user


def set_password(actor: Actor, username: str, password: str) -> User:
    """Change the password of a user and end their sessions."""
    with transaction.atomic():
        user = _locked(username)
        _set_password(user, password)
        user.save(update_fields=["password"])
        audit.record(actor, "USER_PASSWORD_CHANGED", "user", user.pk, changed=["password"])
    return user


def set_active(actor: Actor, username: str, *, active: bool) -> User:
    """Activate or deactivate a user. Users are never deleted, because the audit log refers to them."""
    with transaction.atomic():
        _lock_admins()
        user = _locked(username)
        _keep_an_admin(user, stays=active)
        user.is_active = active
        user.save(update_fields=["is_active"])
        verb = "USER_ACTIVATED" if active else "USER_DEACTIVATED"
        audit.record(actor, verb, "user", user.pk, changed=["is_active"])
    return user


def _taken(username: str) -> NameTaken:
    return NameTaken(f"A user named {username} exists already.")


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


def _lock_admins() -> None:
    """Wait for others: two admins who demote each other at once would each see the other remain."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ADMINS_LOCK])


def _keep_an_admin(user: User, *, stays: bool) -> None:
    """Raise Conflict if this change would leave no admin."""
    if stays or not user.may(Role.ADMIN):
        return
    if not User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=user.pk).exists():
        raise Conflict(f"{user.username} is the last active admin; make another user an admin first.")

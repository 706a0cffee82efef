"""The user's keys of model services, as clients see and set them."""

from amanu.models.credentials import check_form
from amanu.models.key_services import KEY_SERVICES
from amanu.session.events import Client
from amanu.session.services import Services
from amanu_protocol.requests import AuthCheckParams, AuthCheckResult, AuthSetParams, AuthStatus, AuthStatusResult


class Keys:
    def __init__(self, services: Services) -> None:
        self._services = services

    def status(self, client: Client) -> AuthStatusResult:
        services = list(KEY_SERVICES)
        statuses = sorted(
            self._services.auth.status(client.environment),
            key=lambda status: services.index(status.vendor) if status.vendor in services else len(services),
        )
        return AuthStatusResult(vendors=[_described(status) for status in statuses])

    async def check(self, params: AuthCheckParams, client: Client) -> AuthCheckResult:
        """Whether the vendor takes a key. Nothing is kept."""
        key = None if params.key is None else check_form(params.key)
        self._services.secrets.learn([key or ""])
        return await self._services.registry.check_key(params.vendor, key, client.environment)

    def set(self, params: AuthSetParams) -> None:
        self._services.auth.set(params.vendor, params.key)


def _described(status: AuthStatus) -> AuthStatus:
    service = KEY_SERVICES.get(status.vendor)
    if service is None:
        return status
    return status.model_copy(update={"title": service.title, "about": service.about, "page": service.page})

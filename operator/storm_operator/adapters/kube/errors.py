"""What the Kubernetes API can refuse, as types that callers can tell apart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import urllib3
from kubernetes.client.exceptions import ApiException

from storm_operator.adapters.errors import AdapterError


class KubernetesError(AdapterError):
    """The API server refused a call, or could not be reached."""


class NoAnswer(KubernetesError):
    """Nothing came back in time: whoever asks for something else next may wait as long."""


class NotFound(KubernetesError):
    """There is no such object."""


class Conflict(KubernetesError):
    """The object exists already, or has changed since it was read."""


class Refused(KubernetesError):
    """The object or the change is not valid (CEL rule, immutable field, infeasible resize)."""


class Forbidden(KubernetesError):
    """The operator's ServiceAccount lacks a right; the message names verb and resource."""


_BY_STATUS: dict[int, type[KubernetesError]] = {
    504: NoAnswer,
    404: NotFound,
    409: Conflict,
    422: Refused,
    400: Refused,
    403: Forbidden,
}


@contextmanager
def api_errors(what: str) -> Iterator[None]:
    """Turns the client's exceptions into ours; `what` says what was being done."""
    try:
        yield
    except ApiException as error:
        kind = _BY_STATUS.get(error.status or 0, KubernetesError)
        raise kind(f"{what}: {_reason(error)}") from error
    except (urllib3.exceptions.HTTPError, OSError) as error:
        raise NoAnswer(f"{what}: the Kubernetes API does not answer: {error}") from error
    # Neither JSON nor what was asked for: the client raises errors of json and of pydantic, which are ValueErrors.
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise KubernetesError(
            f"{what}: the answer is none of the Kubernetes API (is it a proxy's?): {reason}"
        ) from error


def _reason(error: ApiException) -> str:
    try:
        return str(json.loads(error.body or "")["message"])
    except (ValueError, KeyError, TypeError):
        return f"{error.status} {error.reason}"

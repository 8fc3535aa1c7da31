"""Carrack for Python: managed transfers, copies by the program, and files of endpoints for pandas, zarr and dask.

`Client` speaks to a service; `copy` runs the program; `carrack://ENDPOINT/PATH` opens files by fsspec.
"""

from . import errors, model
from .client import Client
from .errors import CarrackError, CopyFailed, ServiceError, TaskFailed, Unreachable, WaitTimeout
from .files import Files
from .program import CopyProgress, Failure, Report, copy
from .version import VERSION as __version__
from .writing import Writer

__all__ = [
    "CarrackError",
    "Client",
    "CopyFailed",
    "CopyProgress",
    "Failure",
    "Files",
    "Report",
    "ServiceError",
    "TaskFailed",
    "Unreachable",
    "WaitTimeout",
    "Writer",
    "__version__",
    "copy",
    "errors",
    "model",
]

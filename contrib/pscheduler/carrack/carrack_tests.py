"""The tests that this tool can do, each a module: `SCHEMA`, `wanted_of`, `seconds_of` and `run`."""
import carrack_copy
import carrack_route
import carrack_throughput

TESTS = {"disk-to-disk": carrack_copy, "throughput": carrack_throughput, "trace": carrack_route}


def test_of(task):
    """The module of a task's test, and what the task wants of it; ValueError says what this tool cannot do."""
    test = TESTS.get(task.get("type"))
    if test is None:
        raise ValueError("Unsupported test type" if "type" in task else "Missing test type")
    spec = task.get("spec")
    if not isinstance(spec, dict):
        raise ValueError("Missing test specification")
    schema = spec.get("schema", 1)
    if not isinstance(schema, int) or schema > test.SCHEMA:
        raise ValueError(f"Schema {schema!r} is not supported (highest is {test.SCHEMA})")
    return test, test.wanted_of(spec)

"""The batched nodes in the output of EXPLAIN, as regular expressions; plans with workers."""


def above(child: str) -> str:
    """A batched scan that evaluates quals right above this node."""
    properties = r"[^\n]*(\n +\w[^\n]*)*\n +"
    return rf"\(ConfideScan\){properties}Protected Filter:{properties}->  {child}"


def tokens(node: str) -> str:
    """This node, right above one that adds tokens."""
    return rf"{node}\n( +\w[^\n]*\n)+ +->  Custom Scan \(ConfideTokens\)"


def force_workers(connection, state: str) -> None:
    """Each query that can have workers has one. The setting has another name from 16 on."""
    old = connection.info.server_version < 160000
    connection.execute(f"SET {'force_parallel_mode' if old else 'debug_parallel_query'} = {state}")

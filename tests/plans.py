"""The batched nodes in the output of EXPLAIN, as regular expressions."""


def above(child: str) -> str:
    """A batched scan that evaluates quals right above this node."""
    properties = r"[^\n]*(\n +\w[^\n]*)*\n +"
    return rf"\(ConfideScan\){properties}Protected Filter:{properties}->  {child}"


def tokens(node: str) -> str:
    """This node, right above one that adds tokens."""
    return rf"{node}\n( +\w[^\n]*\n)+ +->  Custom Scan \(ConfideTokens\)"

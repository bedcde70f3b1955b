"""What `make bench-instructions` counts: names, without what it takes to count."""

GRANTED = ", with grants asked for"
# What is counted, how often, and per what. The keeper's start takes 1.8 billion instructions,
# half a million more or less (its source of randomness measures jitter): the work of a case must
# be a hundred times as much as that.
CASES = {
    "ring": ("a message through the ring, written and read", 64_000, 1),
    "compare-one": ("one answered int4 < int4, in the keeper", 200_000, 1),
    "add-one": ("one one-way int4 + int4, in the keeper", 200_000, 1),
    "compare-int4": ("a row of int4 < int4, batch of 4096", 300, 4096),
    "compare-text": ("a row of text < text, batch of 4096", 60, 4096),
    "multiply-numeric": ("a row of numeric * numeric into slots, batch of 4096", 80, 4096),
    "compare-one-granted": (f"compare-one{GRANTED}", 200_000, 1),
    "add-one-granted": (f"add-one{GRANTED}", 200_000, 1),
    "compare-int4-granted": (f"compare-int4{GRANTED}", 300, 4096),
    "multiply-numeric-granted": (f"multiply-numeric{GRANTED}", 80, 4096),
    "compare-one-recorded": ("compare-one, recorded", 200_000, 1),
    "add-one-recorded": ("add-one, recorded", 200_000, 1),
    "compare-int4-recorded": ("compare-int4, recorded", 300, 4096),
    "envelope": ("an int4 sealed and opened", 20_000, 1),
}

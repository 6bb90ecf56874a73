// Nothing: a target needs a source, and this one has only Catch's precompiled header to offer.

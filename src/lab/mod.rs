//! Loopback servers that misbehave on purpose.

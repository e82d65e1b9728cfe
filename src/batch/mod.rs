//! The main job: a list of URLs into a results file, whatever happens on the way.

/// A run over a source into a sink.
#[derive(Debug)]
pub struct Batch {
    _todo: (),
}

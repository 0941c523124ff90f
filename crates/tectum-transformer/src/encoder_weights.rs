//! The weights of an encoder and of the steps after it, which are in folders of their own.

use std::path::Path;

use tectum::Result;
use tectum::operation::product::panel_format::PanelFormat;
use tectum_graph::Graph;

use super::SafetensorsWeights;
use super::head::Head;

/// Weights by the names of the graph's parameters: those of the steps after the encoder begin with
/// the name of their folder and a dot.
#[derive(Debug)]
pub(super) struct EncoderWeights {
    encoder: SafetensorsWeights,
    steps: Vec<(String, SafetensorsWeights)>,
}

impl EncoderWeights {
    /// Opens the files; reads no tensor.
    ///
    /// # Errors
    /// As [`SafetensorsWeights::open`].
    pub fn open(folder: &Path, head: &Head) -> Result<EncoderWeights> {
        let encoder = SafetensorsWeights::open(folder)?;
        let steps = head.steps.iter().filter_map(|step| step.path());
        let steps = steps
            .map(|path| {
                let weights = SafetensorsWeights::open(&folder.join(path))?;
                Ok((format!("{path}."), weights))
            })
            .collect::<Result<_>>()?;
        Ok(EncoderWeights { encoder, steps })
    }

    /// Whether the encoder has a tensor whose name has this beginning.
    pub fn has_prefix(&self, prefix: &str) -> bool {
        self.encoder.has_prefix(prefix)
    }

    /// Checks that every parameter of a graph can be read.
    ///
    /// # Errors
    /// As [`SafetensorsWeights::check`].
    pub fn check(&self, graph: &Graph) -> Result<()> {
        graph.parameters().try_for_each(|(parameter, _, shape)| {
            let sizes = shape
                .sizes()
                .expect("invariant: parameters have no letters");
            let (weights, name) = self.place(parameter);
            weights.check(name, &sizes)
        })
    }

    /// The format that stores a parameter's values exactly, or f32.
    pub fn format(&self, parameter: &str) -> PanelFormat {
        let (weights, name) = self.place(parameter);
        weights.format(name)
    }

    /// Reads a parameter.
    ///
    /// # Errors
    /// As [`SafetensorsWeights::read`].
    pub fn read(&self, parameter: &str, shape: &[usize], to: &mut [f32]) -> Result<()> {
        let (weights, name) = self.place(parameter);
        weights.read(name, shape, to)
    }

    /// The files that hold a parameter, and its name there.
    fn place<'a>(&'a self, parameter: &'a str) -> (&'a SafetensorsWeights, &'a str) {
        self.steps
            .iter()
            .find_map(|(prefix, weights)| Some((weights, parameter.strip_prefix(prefix.as_str())?)))
            .unwrap_or((&self.encoder, parameter))
    }
}

//! Layout of the parameters in one flat state.

use std::ops::Range;

use tectum::{ALIGNED_ELEMENTS, DType, Element, Error, Result, View};

use super::{Graph, Node, Shape, find};

/// Offsets for all parameters of a graph, consecutive, each at a multiple of [`ALIGNED_ELEMENTS`].
///
/// One flat state then holds all weights and another all gradients, so that one
/// [`adamw`](tectum::PlanBuilder::adamw) updates everything. The gaps between the parameters are
/// padding: graphs neither read nor write it.
///
/// A flat state with weights in panels of words has elements of several types, each of 32 bits: it
/// is a state of u32 words. [`LayoutEntry::view`] (device) and [`LayoutEntry::values`] (host) are
/// the only places where its parts get their types.
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterLayout {
    entries: Vec<LayoutEntry>,
    len: usize,
}

/// The range of one parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutEntry {
    /// The parameter's name.
    pub name: String,
    /// Its rows and columns: all dimensions before the last, multiplied, and the last.
    pub shape: [usize; 2],
    /// Its first element in the flat state.
    pub offset: usize,
    /// Element type of the view that feeds it: u32 for weights in panels of words.
    pub dtype: DType,
}

impl LayoutEntry {
    /// Its elements in the flat state.
    pub fn range(&self) -> Range<usize> {
        self.offset..self.offset + self.shape[0] * self.shape[1]
    }

    /// Its part of the flat state, in its element type.
    pub fn view(&self, flat: View) -> View {
        flat.part(self.range()).reinterpret(self.dtype)
    }

    /// Its part of the flat state's words on the host, in its element type.
    ///
    /// # Panics
    /// If its elements are not of `T`, or `words` is shorter than the layout.
    pub fn values<'a, T: Element>(&self, words: &'a mut [u32]) -> &'a mut [T] {
        assert_eq!(self.dtype, T::DTYPE, "parameter {}", self.name);
        bytemuck::cast_slice_mut(&mut words[self.range()])
    }
}

impl Graph {
    /// Lays the parameters out in the order they were added.
    ///
    /// # Panics
    /// If a parameter has a letter among its dimensions.
    pub fn parameter_layout(&self) -> ParameterLayout {
        let mut len = 0;
        let place = |(name, node, shape): (&str, Node, Shape)| {
            let offset = len;
            len += shape.len().next_multiple_of(ALIGNED_ELEMENTS);
            LayoutEntry {
                name: name.to_owned(),
                shape: shape.matrix(),
                offset,
                dtype: self.nodes[&node].operation.dtype(self),
            }
        };
        let entries = self.parameters().map(place).collect();
        ParameterLayout { entries, len }
    }
}

impl ParameterLayout {
    /// Elements of the flat state, padding included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Element type of the flat state: f32, or u32 words if some parameters are words.
    pub fn dtype(&self) -> DType {
        if self.entries.iter().all(|entry| entry.dtype == DType::F32) {
            DType::F32
        } else {
            DType::U32
        }
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in order.
    pub fn entries(&self) -> &[LayoutEntry] {
        &self.entries
    }

    /// The entry of a parameter.
    ///
    /// # Errors
    /// `Invalid`, listing the parameters, if none has this name.
    pub fn entry(&self, name: &str) -> Result<&LayoutEntry> {
        find(
            self.entries
                .iter()
                .map(|entry| (entry.name.as_str(), entry)),
            "parameter",
            name,
        )
    }

    /// Each parameter of a graph with its part of the flat weights, as [`Graph::record`] takes
    /// feeds: of the graph of this layout, or of another with the same parameters, for example for
    /// another batch size.
    ///
    /// # Errors
    /// `Invalid` if the length of the view differs from the layout, or `graph` lacks one of the
    /// parameters.
    pub fn feeds(&self, graph: &Graph, weights: View) -> Result<Vec<(Node, View)>> {
        self.check(weights)?;
        let feed = |entry: &LayoutEntry| {
            let node = find(
                graph.parameters().map(|(name, node, _)| (name, node)),
                "parameter",
                &entry.name,
            )?;
            Ok((node, entry.view(weights)))
        };
        self.entries.iter().map(feed).collect()
    }

    /// Each gradient `grad.{parameter}` with its part of the flat gradients, as [`Graph::record`]
    /// takes outputs. If the flat gradients are a state, their padding is zero and AdamW leaves the
    /// weights' padding alone.
    ///
    /// # Errors
    /// `Invalid` if the length of the view differs from the layout, or `gradients` lacks one of the
    /// outputs.
    pub fn gradient_outputs(&self, gradients: &Graph, flat: View) -> Result<Vec<(Node, View)>> {
        self.check(flat)?;
        let output = |entry: &LayoutEntry| {
            Ok((
                gradients.output(&format!("grad.{}", entry.name))?,
                flat.part(entry.range()),
            ))
        };
        self.entries.iter().map(output).collect()
    }

    fn check(&self, flat: View) -> Result<()> {
        if flat.len() == self.len {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "parameter layout of {} elements: a view of {} does not fit",
            self.len,
            flat.len()
        )))
    }
}

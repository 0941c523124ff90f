//! Tensors of float64: what a graph is evaluated on.

use std::collections::BTreeMap;

use tectum::{Error, Result};

use super::{Node, Shape};

/// The values of nodes that are known.
pub(super) type Values = BTreeMap<Node, Tensor>;

/// A row-major tensor of float64.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    pub(super) shape: Shape,
    pub(super) data: Vec<f64>,
}

impl Tensor {
    /// Makes a tensor from row-major data.
    ///
    /// # Errors
    /// `Invalid` if the data does not fill the shape.
    pub fn new(shape: impl Into<Shape>, data: Vec<f64>) -> Result<Self> {
        let shape = shape.into();
        if shape.elements() != Some(data.len()) {
            return Err(Error::invalid(format!(
                "tensor: {} elements given for {shape:?}",
                data.len()
            )));
        }
        Ok(Self { shape, data })
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The elements, row by row.
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    /// Element by element, from the element's index.
    pub(super) fn from_fn(shape: Shape, f: impl FnMut(usize) -> f64) -> Self {
        Self {
            shape,
            data: (0..shape.len()).map(f).collect(),
        }
    }

    /// The row number at a place; none for a negative one.
    pub(super) fn row(&self, place: usize) -> Option<usize> {
        (self.data[place] >= 0.0).then(|| self.data[place] as usize)
    }

    /// With each row of the last axis replaced.
    pub(super) fn map_rows(&self, f: impl FnMut(&mut [f64])) -> Self {
        let mut y = self.clone();
        y.data.chunks_mut(self.shape.matrix()[1]).for_each(f);
        y
    }

    /// The element that belongs to an index of `whole`, when a scalar, row or column repeats, or
    /// each element for a run.
    pub(super) fn broadcast_element(&self, whole: Shape, place: usize) -> f64 {
        let run = if self.shape.broadcasts_to(whole) {
            1
        } else {
            self.shape.run_in(whole).unwrap_or(whole.matrix()[1])
        };
        self.data[place / run % self.shape.len()]
    }
}

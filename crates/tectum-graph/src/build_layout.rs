//! Building operations that move elements: gathers, reshapes, permutations, slices, concatenations.

use tectum::Result;
use tectum::operation::product::panel_format::PanelFormat;

use super::builder::GraphBuilder;
use super::{Dim, MAX_RANK, Node, Operation, Shape};

impl GraphBuilder {
    /// Adds rows of a table by index: `y[.., j] = table[indices[..], j]`. An index out of range gives zeros.
    ///
    /// # Shapes
    /// `table` [rows.., n], whose rows are counted over all dimensions except the last, `indices` [..] as [`GraphBuilder::indices`] adds
    /// them; gives [.., n].
    /// # Errors
    /// `Invalid` if the table has fewer than two dimensions, `indices` has more than three or is not row numbers, or a node is not of this graph.
    pub fn gather(&mut self, table: Node, indices: Node) -> Result<Node> {
        let table_shape = self.shape("gather", table)?;
        let indices_shape = self.index_shape("gather", indices)?;
        if table_shape.rank() < 2 || indices_shape.rank() >= MAX_RANK {
            let shapes = format!("table {table_shape:?}, indices {indices_shape:?}");
            return Err(self.fault(format_args!("gather: {shapes}: a table [rows.., n] and at most three dimensions of indices are needed")));
        }
        let shape = Shape::of(&[indices_shape.dims(), &[table_shape.last()]].concat());
        self.check_shape("gather", shape)?;
        Ok(self.push(Operation::Gather { table, indices }, shape))
    }

    /// Adds the same elements in another shape.
    ///
    /// # Errors
    /// `Invalid` if the shapes differ in their number of elements, letter for letter, or the node is not of this graph.
    pub fn reshape(&mut self, x: Node, shape: impl Into<Shape>) -> Result<Node> {
        let (from, shape) = (self.shape("reshape", x)?, shape.into());
        if from == shape {
            return Ok(x);
        }
        self.check_shape("reshape", shape)?;
        if from.content() != shape.content() {
            return Err(self.fault(format_args!("reshape: {from:?} to {shape:?}: they do not hold as many elements")));
        }
        Ok(self.push(Operation::Reshape { x }, shape))
    }

    /// Adds the value with its axes in another order: axis `i` of the result is axis `order[i]` of `x`.
    ///
    /// # Errors
    /// `Invalid` if `order` does not name each axis once or the node is not of this graph.
    pub fn permute(&mut self, x: Node, order: &[usize]) -> Result<Node> {
        let shape = self.shape("permute", x)?;
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if sorted != (0..shape.rank()).collect::<Vec<_>>() {
            return Err(self.fault(format_args!("permute: {shape:?} by {order:?}: each axis is needed once")));
        }
        if order.is_sorted() {
            return Ok(x);
        }
        let dims: Vec<Dim> = order.iter().map(|&axis| shape.dims()[axis]).collect();
        Ok(self.push(Operation::Permute { x, order: order.to_vec() }, Shape::of(&dims)))
    }

    /// Adds `len` elements of an axis from `start` on; a letter as `len` must fit when it is bound.
    ///
    /// # Errors
    /// `Invalid` if the axis is too short, is a letter or does not exist, `len` is 0, or the node is not of this graph.
    pub fn slice(&mut self, x: Node, axis: usize, start: usize, len: impl Into<Dim>) -> Result<Node> {
        let (shape, len) = (self.shape("slice", x)?, len.into());
        self.check_axis("slice", shape, axis)?;
        match (shape.dims()[axis], len) {
            (whole, len) if start == 0 && whole == len => Ok(x),
            (Dim::Size(_), len) if slice_fits(shape, axis, start, len) => {
                let sliced = shape.with(axis, len);
                self.check_shape("slice", sliced)?;
                Ok(self.push(Operation::Slice { x, axis, start }, sliced))
            }
            (dim, _) => Err(self.fault(format_args!("slice: {len:?} from {start} on of axis {axis} of {shape:?}, which is {dim:?}"))),
        }
    }

    /// Concatenates values along an axis.
    ///
    /// # Errors
    /// `Invalid` if there are no values, another axis differs, this one is a letter or does not exist, or a node is not of this graph.
    pub fn concat(&mut self, parts: &[Node], axis: usize) -> Result<Node> {
        let Some(&first) = parts.first() else { return Err(self.fault(format_args!("concat: no operands"))) };
        // Words of panels may be concatenated like floats.
        let format = self.graph().panel_format(first).filter(|format| *format != PanelFormat::F32);
        let shape_of = |part: Node| match format {
            Some(_) if self.graph().panel_format(part) == format => self.graph().shape(part),
            _ => self.shape("concat", part),
        };
        let shape = shape_of(first)?;
        self.check_axis("concat", shape, axis)?;
        let mut total = 0;
        for &part in parts {
            let part = shape_of(part)?;
            let others_agree = part.rank() == shape.rank() && part.with(axis, 1) == shape.with(axis, 1);
            match part.dims().get(axis) {
                Some(Dim::Size(size)) if others_agree => total += size,
                _ => return Err(self.fault(format_args!("concat: {shape:?} and {part:?} along axis {axis}"))),
            }
        }
        if parts.len() == 1 {
            return Ok(first);
        }
        let shape = shape.with(axis, total);
        self.check_shape("concat", shape)?;
        Ok(self.push(Operation::Concat { parts: parts.to_vec(), axis }, shape))
    }

    /// The shape of row numbers.
    pub(super) fn index_shape(&self, op: &str, node: Node) -> Result<Shape> {
        let shape = self.graph().shape(node).map_err(|error| error.at(op))?;
        match self.graph().nodes[&node].operation {
            Operation::Indices { .. } => Ok(shape),
            _ => Err(self.fault(format_args!("{op}: operand {node} {shape:?} is f32, row numbers are needed"))),
        }
    }
}

/// Whether an axis is long enough for a slice of it, as far as known.
pub(super) fn slice_fits(whole: Shape, axis: usize, start: usize, len: Dim) -> bool {
    match (whole.dims()[axis], len) {
        (Dim::Size(size), Dim::Size(len)) => len > 0 && start.checked_add(len).is_some_and(|end| end <= size),
        (Dim::Size(size), Dim::Symbol(_)) => start < size,
        (Dim::Symbol(_), _) => false,
    }
}

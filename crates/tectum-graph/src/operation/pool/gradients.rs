//! Gradients of maxima and means over windows of space.

use tectum::Window;

use super::{Pool, PoolKind};
use crate::operation::convolution::gradients::unread;
use crate::operation::convolution::{at, image, places, space};
use crate::operation::{Comparison, Dim, GraphBuilder, Node, Result, Shape};

impl Pool {
    /// For each element of a channel of the input the windows that read it, then −1, as the columns
    /// of a table: as many rows as the maximum number of windows.
    fn readers(&self, size_in: [usize; 3], size_out: [usize; 3]) -> Vec<Vec<i32>> {
        let Window {
            kernel,
            stride,
            dilation,
            pad_before,
            ..
        } = self.window;
        let along = |axis: usize, at: usize| -> Vec<usize> {
            let first = |tap: usize| (at + pad_before[axis]).checked_sub(tap * dilation[axis]);
            let firsts = (0..kernel[axis])
                .filter_map(first)
                .filter(|first| first.is_multiple_of(stride[axis]));
            firsts
                .map(|first| first / stride[axis])
                .filter(|place| *place < size_out[axis])
                .collect()
        };
        let lists: [Vec<Vec<usize>>; 3] =
            std::array::from_fn(|axis| (0..size_in[axis]).map(|at| along(axis, at)).collect());
        let mut table: Vec<Vec<i32>> = Vec::new();
        for place in places(size_in) {
            let lists: [&Vec<usize>; 3] = std::array::from_fn(|axis| &lists[axis][place[axis]]);
            for (turn, each) in places(lists.map(Vec::len)).enumerate() {
                if turn == table.len() {
                    table.push(vec![-1; size_in.iter().product()]);
                }
                table[turn][at(size_in, place)] = at(
                    size_out,
                    std::array::from_fn(|axis| lists[axis][each[axis]]),
                ) as i32;
            }
        }
        table
    }

    /// The sum, for each element of the input, of the g of those windows of which it is the
    /// maximum.
    ///
    /// Channels are columns: each window that reads an element gives it a row, of which the columns
    /// count whose place it is.
    pub(super) fn give_places(&self, g: Node, builder: &mut GraphBuilder) -> Result<Node> {
        let (shape, out) = (builder.shape_of(self.x)?, image(builder.shape_of(g)?));
        let (size_in, size_out) = (space(image(shape)), space(out));
        let [channels, pixels, volume] = [
            out[0] * out[1],
            size_out.iter().product(),
            size_in.iter().product(),
        ];
        let readers = self.readers(size_in, size_out);
        let zero = builder.constant(&[0.0], [1, 1])?;
        if readers.is_empty() {
            return builder.broadcast(zero, shape);
        }
        let places = builder.pool(self.x, PoolKind::MaxPlace, self.window)?;
        let table = builder.integer_constant(&readers.concat(), [readers.len(), volume])?;
        let [g, places] = [g, places].map(|node| {
            let flat = builder.reshape(node, [channels, pixels])?;
            let turned = builder.permute(flat, &[1, 0])?;
            builder.gather(turned, table)
        });
        let own = builder.integer_constant(&(0..volume as i32).collect::<Vec<_>>(), [volume, 1])?;
        let is_place = builder.compare(Comparison::Equal, places?, own)?;
        let given = builder.select(is_place, g?, zero)?;
        let sum = builder.reduce_to(given, Shape::from([volume, channels]))?;
        let turned = builder.permute(sum, &[1, 0])?;
        builder.reshape(turned, shape)
    }

    /// A transposed convolution by ones of g divided by the elements of each window.
    pub(super) fn give_windows(&self, g: Node, builder: &mut GraphBuilder) -> Result<Node> {
        let (shape, out) = (builder.shape_of(self.x)?, builder.shape_of(g)?);
        let ([images, channels, ..], size_in, size_out) =
            (image(out), space(image(shape)), space(image(out)));
        // A window without elements gives nothing, divided by anything.
        let counts: Vec<f32> = places(size_out)
            .map(|place| self.count(place, size_in).max(1.0) as f32)
            .collect();
        let is_same = counts.iter().all(|count| *count == counts[0]);
        let dims = |first: usize, sizes: [usize; 3]| {
            let space = sizes[5 - shape.rank()..]
                .iter()
                .map(|size| Dim::Size(*size));
            Shape::of(
                &[Dim::Size(first), Dim::Size(1)]
                    .into_iter()
                    .chain(space)
                    .collect::<Vec<_>>(),
            )
        };
        let divisor = if is_same {
            builder.constant(&counts[..1], [1, 1])?
        } else {
            builder.constant(&counts, Shape::of(&out.dims()[2..]))?
        };
        let shares = builder.div(g, divisor)?;
        let Window {
            kernel,
            dilation,
            pad_before,
            ..
        } = self.window;
        if size_out == [1; 3] && (kernel, dilation, pad_before) == (size_in, [1; 3], [0; 3]) {
            // One window reads everything.
            return builder.broadcast(shares, shape);
        }
        let shares = builder.reshape(shares, dims(images * channels, size_out))?;
        let one = builder.constant(&[1.0], [1, 1])?;
        let ones = builder.broadcast(one, dims(1, kernel))?;
        let spread = builder.convolution_transposed(
            shares,
            ones,
            None,
            1,
            self.window,
            unread(&self.window, size_in),
        )?;
        builder.reshape(spread, shape)
    }
}

//! Nodes of convolutional networks and of tables: convolutions, pooling, running sums, scatters,
//! top-k, integers. A matrix [rows, cols] is an image of as many channels with one axis of space.

use tectum::{DType, ErrorKind, ScatterUpdate, Window};
use tectum_graph::{Comparison, GraphBuilder, IntegerOp, PoolKind};

use super::graphs::{Added, UNIT, Value};
use super::world::World;

/// A window along the last axis.
#[derive(Debug, Clone, Copy)]
struct Along {
    kernel: usize,
    stride: usize,
    dilation: usize,
    before: usize,
    after: usize,
}

impl Along {
    fn window(self) -> Window {
        let last = |size: usize, unused: usize| [unused, unused, size];
        let Self {
            kernel,
            stride,
            dilation,
            before,
            after,
        } = self;
        Window {
            kernel: last(kernel, 1),
            stride: last(stride, 1),
            dilation: last(dilation, 1),
            pad_before: last(before, 0),
            pad_after: last(after, 0),
        }
    }

    /// The size of the output for an input of a size at most 1,000.
    fn out(self, size: usize) -> Option<usize> {
        let is_small = [self.kernel, self.stride, self.dilation]
            .iter()
            .all(|size| (1..1000).contains(size))
            && self.before.max(self.after) < 1000;
        let extent = is_small.then(|| (self.kernel - 1) * self.dilation + 1)?;
        Some((size + self.before + self.after).checked_sub(extent)? / self.stride + 1)
    }

    fn transposed_out(self, size: usize, adds: usize) -> Option<usize> {
        let is_small = [self.kernel, self.stride, self.dilation]
            .iter()
            .all(|size| (1..1000).contains(size))
            && self.before.max(self.after).max(adds) < 1000;
        let whole = is_small
            .then(|| (size - 1) * self.stride + (self.kernel - 1) * self.dilation + 1 + adds)?;
        whole
            .checked_sub(self.before + self.after)
            .filter(|out| *out > 0)
    }

    /// What an element of the window at a place of the grid reads, of an axis of a size.
    fn read(self, grid: usize, tap: usize, size: usize) -> Option<usize> {
        (grid * self.stride + tap * self.dilation)
            .checked_sub(self.before)
            .filter(|at| *at < size)
    }
}

fn floats(data: &[f64]) -> Vec<f32> {
    data.iter().map(|value| *value as f32).collect()
}

fn refused(fits: bool) -> Option<ErrorKind> {
    (!fits).then_some(ErrorKind::Invalid)
}

impl World {
    /// An operation on an image or table; none if an operand was refused as required.
    pub fn image(&mut self, place: usize, x: &Value) -> Result<Option<Added>, String> {
        Ok(match self.random.below(7) {
            0 => Some(self.convolution_node(x)),
            1 => Some(self.transposed_node(x)),
            2 => Some(self.pool_node(x)),
            3 => Some(self.cumsum_node(x)),
            4 => self.scatter_node(place, x)?,
            5 => Some(self.top_k_node(x)),
            _ => Some(self.integer_node(x)),
        })
    }

    /// A window; occasionally one number at a limit, or padding along an axis that is not used.
    fn along(&mut self) -> (Along, Window, bool) {
        let mut along = Along {
            kernel: 1 + self.below(3),
            stride: 1 + self.below(3),
            dilation: 1 + self.below(2),
            before: self.below(3),
            after: self.below(3),
        };
        let extreme = self
            .random
            .pick(&[0, 1 << 30, 1 << 32, 1 << 62, usize::MAX]);
        match self.random.below(40) {
            0 => along.kernel = extreme,
            1 => along.stride = if extreme == 1 << 30 { 0 } else { extreme },
            // Of one element no number is too great.
            2 => along.dilation = if along.kernel == 1 { 0 } else { extreme },
            3 => along.before = extreme.max(1 << 32),
            4 => along.after = extreme.max(1 << 32),
            _ => {}
        }
        let mut window = along.window();
        let unused = self.below(2);
        let is_right = match self.random.below(40) {
            0 => {
                window.kernel[unused] = 2;
                false
            }
            1 => {
                window.pad_before[unused] = 1;
                false
            }
            _ => true,
        };
        (along, window, is_right)
    }

    /// Groups of the rows, channels of the result of each, and whether they fit: occasionally not.
    fn groups(&mut self, rows: usize) -> (usize, usize, bool) {
        let fitting: Vec<usize> = (1..=rows)
            .filter(|groups| rows.is_multiple_of(*groups))
            .collect();
        let groups = match self.random.below(20) {
            0 => self.random.pick(&[0, 7, 1 << 62, usize::MAX]),
            _ => fitting[self.below(fitting.len())],
        };
        (
            groups,
            1 + self.below(3),
            groups > 0 && rows.is_multiple_of(groups),
        )
    }

    fn convolution_node(&mut self, x: &Value) -> Added {
        let (node, [rows, cols]) = (x.node, x.shape);
        let ((along, window, is_right), (groups, per_out, is_whole)) =
            (self.along(), self.groups(rows));
        let kernel = along.kernel.clamp(1, 4);
        let (per_in, filters) = if is_whole {
            (rows / groups, groups * per_out)
        } else {
            (1, per_out)
        };
        let long = usize::from(self.chance(25));
        let (w, bias) = (self.small(filters * per_in * kernel), self.small(filters));
        let out = along
            .out(cols)
            .filter(|_| is_right && is_whole && long == 0 && kernel == along.kernel);
        let element = |at: usize, out: usize| {
            let (filter, grid) = (at / out, at % out);
            let taps = (0..per_in).flat_map(|inside| (0..kernel).map(move |tap| (inside, tap)));
            let term = |(inside, tap): (usize, usize)| {
                let read = along.read(grid, tap, cols)?;
                Some(
                    w[(filter * per_in + inside) * kernel + tap]
                        * x.data[(filter / per_out * per_in + inside) * cols + read],
                )
            };
            taps.filter_map(term).sum::<f64>() + bias[filter]
        };
        let data: Vec<f64> = out.map_or(vec![], |out| {
            (0..filters * out).map(|at| element(at, out)).collect()
        });
        let terms = (per_in * kernel) as f64;
        // Weights are at most 2.
        let error = 2.0 * terms * x.error + (terms + 2.0) * UNIT * (2.0 * terms * x.size + 2.0);
        let text = format!(
            "convolution {node} {groups} groups, {filters} filters {w:?} {window:?}, bias {long} too long"
        );
        let add = move |g: &mut GraphBuilder| {
            let image = g.reshape(node, [1, rows, cols])?;
            let w = g.constant(&floats(&w), [filters, per_in, kernel])?;
            let bias = g.constant(&[floats(&bias), vec![0.0; long]].concat(), [filters + long])?;
            let y = g.convolution(image, w, Some(bias), groups, window)?;
            let sizes = g.shape_of(y)?.sizes().unwrap_or_default();
            g.reshape(y, [sizes[1], sizes[2]])
        };
        (
            text,
            refused(out.is_some()),
            Box::new(add),
            [filters, out.unwrap_or(0)],
            data,
            error,
        )
    }

    fn transposed_node(&mut self, x: &Value) -> Added {
        let (node, [rows, cols]) = (x.node, x.shape);
        let ((along, window, is_right), (groups, per_out, is_whole)) =
            (self.along(), self.groups(rows));
        let kernel = along.kernel.clamp(1, 4);
        let mut adds = [0, 0, self.below(3)];
        let is_unused = match self.random.below(40) {
            0 => {
                adds[1] = 1;
                false
            }
            1 => {
                adds[2] = usize::MAX;
                true
            }
            _ => true,
        };
        let channels = if is_whole { groups * per_out } else { per_out };
        let w = self.small(rows * per_out * kernel);
        let out = along
            .transposed_out(cols, adds[2])
            .filter(|_| is_right && is_whole && is_unused && kernel == along.kernel);
        let mut data = vec![0.0; out.map_or(0, |out| channels * out)];
        for (channel, from) in (0..rows)
            .flat_map(|channel| (0..cols).map(move |from| (channel, from)))
            .filter(|_| out.is_some())
        {
            let out = out.unwrap_or(1);
            for (inside, tap) in
                (0..per_out).flat_map(|inside| (0..kernel).map(move |tap| (inside, tap)))
            {
                if let Some(to) = along.read(from, tap, out) {
                    let row = channel / (rows / groups) * per_out + inside;
                    data[row * out + to] += w[(channel * per_out + inside) * kernel + tap]
                        * x.data[channel * cols + from];
                }
            }
        }
        let terms = (rows * kernel) as f64;
        let error = 2.0 * terms * x.error + (terms + 2.0) * UNIT * 2.0 * terms * x.size;
        let text = format!(
            "convolution_transposed {node} {groups} groups, {per_out} each {w:?} {window:?} {adds:?}"
        );
        let add = move |g: &mut GraphBuilder| {
            let image = g.reshape(node, [1, rows, cols])?;
            let w = g.constant(&floats(&w), [rows, per_out, kernel])?;
            let y = g.convolution_transposed(image, w, None, groups, window, adds)?;
            let sizes = g.shape_of(y)?.sizes().unwrap_or_default();
            g.reshape(y, [sizes[1], sizes[2]])
        };
        (
            text,
            refused(out.is_some()),
            Box::new(add),
            [channels, out.unwrap_or(0)],
            data,
            error,
        )
    }

    /// Of maxima where a window reads an element; places only where values are exact and differ.
    fn pool_node(&mut self, x: &Value) -> Added {
        let (node, [rows, cols]) = (x.node, x.shape);
        let (along, window, is_right) = self.along();
        let after = if self.chance(20) {
            along.after.saturating_add(1)
        } else {
            self.below(along.after.saturating_add(1).min(1000))
        };
        let kinds = [
            PoolKind::Max,
            PoolKind::MaxPlace,
            PoolKind::MeanInside,
            PoolKind::MeanPadded {
                after: [0, 0, after],
            },
        ];
        let kind = self.random.pick(&kinds);
        let is_counted = !matches!(kind, PoolKind::MeanPadded { .. }) || after <= along.after;
        let out = along.out(cols).filter(|_| is_right && is_counted);
        let read = |at: usize, out: usize| {
            (0..along.kernel)
                .filter_map(move |tap| along.read(at % out, tap, cols))
                .map(move |read| at / out * cols + read)
        };
        let is_full = out.is_some_and(|out| (0..out).all(|at| read(at, out).next().is_some()));
        // A maximum of nothing is −∞, and the places of nearly equal elements are those of any.
        let is_zeroed = kind == PoolKind::MaxPlace || (kind == PoolKind::Max && !is_full);
        let element = |at: usize, out: usize| match kind {
            _ if is_zeroed => 0.0,
            PoolKind::Max | PoolKind::MaxPlace => read(at, out)
                .map(|at| x.data[at])
                .fold(f64::NEG_INFINITY, f64::max),
            PoolKind::MeanInside => {
                read(at, out).map(|at| x.data[at]).sum::<f64>()
                    / read(at, out).count().max(1) as f64
            }
            PoolKind::MeanPadded { .. } => {
                let inside = |tap: &usize| {
                    at % out * along.stride + tap * along.dilation < along.before + cols + after
                };
                read(at, out).map(|at| x.data[at]).sum::<f64>()
                    / (0..along.kernel).filter(inside).count().max(1) as f64
            }
        };
        let data = out.map_or(vec![], |out| {
            (0..rows * out).map(|at| element(at, out)).collect()
        });
        let error = x.error + 8.0 * UNIT * x.size;
        let add = move |g: &mut GraphBuilder| {
            let image = g.reshape(node, [1, rows, cols])?;
            let y = g.pool(image, kind, window)?;
            let sizes = g.shape_of(y)?.sizes().unwrap_or_default();
            let flat = g.reshape(y, [sizes[1], sizes[2]])?;
            let made = if kind == PoolKind::MaxPlace {
                g.convert(flat, DType::F32)?
            } else {
                flat
            };
            if !is_zeroed {
                return Ok(made);
            }
            let zero = g.constant(&[0.0], [1, 1])?;
            let never = g.compare(Comparison::NotEqual, zero, zero)?;
            g.select(never, made, zero)
        };
        (
            format!("pool {node} {kind:?} {window:?}"),
            refused(out.is_some()),
            Box::new(add),
            [rows, out.unwrap_or(0)],
            data,
            error,
        )
    }

    fn cumsum_node(&mut self, x: &Value) -> Added {
        let (node, [rows, cols]) = (x.node, x.shape);
        let (exclusive, reverse, is_scalar) = (self.chance(2), self.chance(2), self.chance(20));
        let terms = |col: usize| match (exclusive, reverse) {
            (false, false) => 0..col + 1,
            (true, false) => 0..col,
            (false, true) => col..cols,
            (true, true) => col + 1..cols,
        };
        let sum = |place: usize| {
            x.data[place / cols * cols..][..cols][terms(place % cols)]
                .iter()
                .sum()
        };
        let data = (0..rows * cols).map(sum).collect();
        let error = cols as f64 * (x.error + UNIT * cols as f64 * x.size);
        let add = move |g: &mut GraphBuilder| {
            let x = if is_scalar {
                g.constant(&[1.0], [])?
            } else {
                node
            };
            g.cumsum(x, exclusive, reverse)
        };
        (
            format!("cumsum {node} exclusive {exclusive} reverse {reverse}"),
            refused(!is_scalar),
            Box::new(add),
            [rows, cols],
            data,
            error,
        )
    }

    /// A table with some rows updated; a row beyond it is ignored.
    fn scatter_node(&mut self, place: usize, x: &Value) -> Result<Option<Added>, String> {
        let (table, [rows, cols]) = (x.node, x.shape);
        let count = 1 + self.below(4);
        let Some((indices, chosen)) = self.indices_of(place, [1, count], rows + 1)? else {
            return Ok(None);
        };
        let how = self.random.pick(&[
            ScatterUpdate::Assign,
            ScatterUpdate::Add,
            ScatterUpdate::Mul,
            ScatterUpdate::Max,
            ScatterUpdate::Min,
        ]);
        let updates = self.small(count * cols);
        let (more, is_swapped) = (usize::from(self.chance(15)), self.chance(20));
        let (mut data, mut error, mut size) = (x.data.clone(), x.error, x.size);
        for (update, row) in updates
            .chunks(cols)
            .zip(&chosen)
            .filter(|(_, row)| **row < rows as f64)
        {
            for (y, b) in data[*row as usize * cols..][..cols].iter_mut().zip(update) {
                *y = match how {
                    ScatterUpdate::Assign => *b,
                    ScatterUpdate::Add => *y + b,
                    ScatterUpdate::Mul => *y * b,
                    ScatterUpdate::Max => y.max(*b),
                    ScatterUpdate::Min => y.min(*b),
                };
            }
            // Updates are at most 2.
            size = 2.0 * size + 2.0;
            error = 2.0 * error + UNIT * size;
        }
        let fits = more == 0 && !is_swapped;
        let add = move |g: &mut GraphBuilder| {
            let updates = g.constant(
                &[floats(&updates), vec![0.0; more * cols]].concat(),
                [count + more, cols],
            )?;
            if is_swapped {
                g.scatter(how, table, updates, indices)
            } else {
                g.scatter(how, table, indices, updates)
            }
        };
        let text =
            format!("scatter {how:?} {table} {indices}, {more} too many, swapped {is_swapped}");
        Ok(Some((
            text,
            refused(fits),
            Box::new(add),
            [rows, cols],
            data,
            error,
        )))
    }

    /// The greatest element of each row by its place, and the places of others, which count
    /// nothing.
    fn top_k_node(&mut self, x: &Value) -> Added {
        let (node, [rows, cols]) = (x.node, x.shape);
        let k = if self.chance(5) {
            self.random.pick(&[0, cols + 1, 513, usize::MAX])
        } else {
            1 + self.below(cols)
        };
        let data = x
            .data
            .chunks(cols)
            .map(|row| row.iter().copied().fold(f64::NEG_INFINITY, f64::max))
            .collect();
        let add = move |g: &mut GraphBuilder| {
            let columns = g.top_k(node, k)?;
            let first = g.slice(columns, 1, 0, 1)?;
            let starts = g.integer_constant(
                &(0..rows).map(|row| (row * cols) as i32).collect::<Vec<_>>(),
                [rows, 1],
            )?;
            let places = g.integer(IntegerOp::Add, first, Some(starts))?;
            let (places, flat) = (
                g.reshape(places, [rows])?,
                g.reshape(node, [rows * cols, 1])?,
            );
            g.gather(flat, places)
        };
        (
            format!("top_k {node} {k}"),
            refused((1..=cols).contains(&k)),
            Box::new(add),
            [rows, 1],
            data,
            2.0 * x.error,
        )
    }

    /// A function of integers, as floats added to a value.
    fn integer_node(&mut self, x: &Value) -> Added {
        let (node, shape) = (x.node, x.shape);
        let len = shape[0] * shape[1];
        let [a, b] = [(); 2].map(|()| {
            (0..len)
                .map(|_| self.below(13) as i32 - 6)
                .collect::<Vec<i32>>()
        });
        let ops = [
            IntegerOp::Add,
            IntegerOp::Sub,
            IntegerOp::Mul,
            IntegerOp::Div,
            IntegerOp::Rem,
            IntegerOp::Min,
            IntegerOp::Max,
            IntegerOp::And,
            IntegerOp::Neg,
        ];
        let op = self.random.pick(&ops);
        let (wants_second, has_second) = (
            op != IntegerOp::Neg,
            (op != IntegerOp::Neg) != self.chance(12),
        );
        let how = self.random.below(20);
        let made = |(a, b): (&i32, &i32)| match op {
            IntegerOp::Add => a + b,
            IntegerOp::Sub => a - b,
            IntegerOp::Mul => a * b,
            IntegerOp::Div => a.checked_div(*b).unwrap_or(0),
            IntegerOp::Rem => a.checked_rem(*b).unwrap_or(0),
            IntegerOp::Min => *a.min(b),
            IntegerOp::Max => *a.max(b),
            IntegerOp::And => a & b,
            _ => -a,
        };
        let data = x
            .data
            .iter()
            .zip(a.iter().zip(&b))
            .map(|(x, pair)| x + f64::from(made(pair)))
            .collect();
        let text =
            format!("integer {op:?} {a:?} {b:?} added to {node}, second {has_second}, case {how}");
        let add = move |g: &mut GraphBuilder| {
            let (a, b) = (
                g.integer_constant(&a, shape)?,
                g.integer_constant(&b, shape)?,
            );
            let b = match how {
                0 => node,
                1 if shape[1] > 1 => g.integer_constant(&vec![1; shape[1] + 1], [shape[1] + 1])?,
                2 => g.integer_constant(&[1, 2], [1])?,
                _ => b,
            };
            let made = g.integer(op, a, has_second.then_some(b))?;
            let made = g.convert(made, DType::F32)?;
            g.add(made, node)
        };
        let is_second_right = !has_second || (how > 0 && !(how == 1 && shape[1] > 1));
        (
            text,
            refused(wants_second == has_second && is_second_right && how != 2),
            Box::new(add),
            shape,
            data,
            x.error + UNIT * (x.size + 40.0),
        )
    }
}

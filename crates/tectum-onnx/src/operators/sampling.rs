//! Values taken at places that the network computes: grids, regions, and places of maxima.

use tectum::{DType, Error, Result, ScatterUpdate};
use tectum_graph::{BinaryOp, Comparison, Function, IntegerOp, Node, Reduction};

use super::Family;
use super::constants::{convert, sizes};
use super::matrix::product;
use super::selection::for_axes;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value, shape};

pub(super) const FAMILY: Family = &[
    ("AffineGrid", affine_grid),
    ("GridSample", grid_sample),
    ("MaxUnpool", max_unpool),
    ("RoiAlign", roi_align),
];

/// The cubic coefficient of samples.
const CUBIC: f32 = -0.75;

#[derive(Clone, Copy, PartialEq)]
enum Padding {
    Zeros,
    Border,
    Reflection,
}

/// A place of an axis and its weight, for each sample.
struct Tap {
    /// i32, inside the axis.
    place: Node,
    /// f32; none for 1.
    weight: Option<Node>,
}

impl Emit<'_> {
    fn integer_with(&mut self, op: IntegerOp, node: Node, number: usize) -> Result<Node> {
        let number = self.integer(number as i32)?;
        self.builder.integer(op, node, Some(number))
    }

    /// Whole floats as places inside an axis, and whether each was inside.
    fn inside(
        &mut self,
        at: Node,
        size: usize,
        padding: Padding,
        aligns: bool,
    ) -> Result<(Node, Option<Node>)> {
        let place = self.builder.convert(at, DType::I32)?;
        let clamped = {
            let low = self.integer_with(IntegerOp::Max, place, 0)?;
            self.integer_with(IntegerOp::Min, low, size - 1)?
        };
        match padding {
            Padding::Border => Ok((clamped, None)),
            Padding::Zeros => {
                let is_inside = self.builder.compare(Comparison::Equal, clamped, place)?;
                Ok((clamped, Some(is_inside)))
            }
            Padding::Reflection if size == 1 => Ok((clamped, None)),
            Padding::Reflection => {
                // Reflected at the centres of the outer elements, or at their borders.
                let (period, far) = if aligns {
                    (2 * size - 2, 2 * size - 2)
                } else {
                    (2 * size, 2 * size - 1)
                };
                let place = self.integer_with(IntegerOp::Mod, place, period)?;
                let far = self.integer(far as i32)?;
                let turned = self.builder.integer(IntegerOp::Sub, far, Some(place))?;
                Ok((
                    self.builder.integer(IntegerOp::Min, place, Some(turned))?,
                    None,
                ))
            }
        }
    }

    /// a·t³ + b·t² + c·t + d
    fn polynomial(&mut self, t: Node, [a, b, c, d]: [f32; 4]) -> Result<Node> {
        let mut sum = self.builder.scale(t, a)?;
        for number in [b, c] {
            sum = self.with(BinaryOp::Add, sum, number)?;
            sum = self.builder.mul(sum, t)?;
        }
        self.with(BinaryOp::Add, sum, d)
    }

    /// The places of an axis that a sample at `at` reads.
    fn taps(
        &mut self,
        at: Node,
        size: usize,
        mode: &str,
        padding: Padding,
        aligns: bool,
    ) -> Result<Vec<Tap>> {
        let is_nearest = mode == "nearest";
        let first = self.builder.function(
            if is_nearest {
                Function::Round
            } else {
                Function::Floor
            },
            at,
        )?;
        let t = self.builder.sub(at, first)?;
        let weights: Vec<(f32, Option<Node>)> = match mode {
            "nearest" => vec![(0.0, None)],
            "linear" | "bilinear" => {
                let rest = self.builder.scale(t, -1.0)?;
                vec![
                    (0.0, Some(self.with(BinaryOp::Add, rest, 1.0)?)),
                    (1.0, Some(t)),
                ]
            }
            "cubic" | "bicubic" => {
                const A: f32 = CUBIC;
                // The weights of distances t + 1, t, 1 − t and 2 − t, in powers of t.
                let weights = [
                    [A, -2.0 * A, A, 0.0],
                    [A + 2.0, -A - 3.0, 0.0, 1.0],
                    [-A - 2.0, 2.0 * A + 3.0, -A, 0.0],
                    [-A, A, 0.0, 0.0],
                ];
                let mut taps = Vec::new();
                for (step, weight) in [-1.0, 0.0, 1.0, 2.0].into_iter().zip(weights) {
                    taps.push((step, Some(self.polynomial(t, weight)?)));
                }
                taps
            }
            other => return Err(Error::data(format!("mode {other:?}"))),
        };
        let mut taps = Vec::new();
        for (step, weight) in weights {
            let at = if step == 0.0 {
                first
            } else {
                self.with(BinaryOp::Add, first, step)?
            };
            let (place, is_inside) = self.inside(at, size, padding, aligns)?;
            let weight = match (is_inside, weight) {
                (None, weight) => weight,
                (Some(is_inside), None) => Some(self.builder.convert(is_inside, DType::F32)?),
                (Some(is_inside), Some(weight)) => {
                    let zero = self.number(0.0)?;
                    Some(self.builder.select(is_inside, weight, zero)?)
                }
            };
            taps.push(Tap { place, weight });
        }
        Ok(taps)
    }
}

fn grid_sample(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, grid) = (call.input(0)?, call.input(1)?);
    let mode = call.attributes.string_or("mode", "linear")?;
    let aligns = call.attributes.flag("align_corners", false)?;
    let padding = match call.attributes.string_or("padding_mode", "zeros")? {
        "zeros" => Padding::Zeros,
        "border" => Padding::Border,
        "reflection" => Padding::Reflection,
        other => return Err(Error::data(format!("padding_mode {other:?}"))),
    };
    let rank = x.rank().saturating_sub(2);
    if rank == 0
        || grid.rank() != rank + 2
        || grid.dims[0] != x.dims[0]
        || grid.dims[rank + 1] != rank
        || x.len() == 0
        || grid.len() == 0
    {
        return Err(Error::data(format!(
            "a grid {:?} for {:?}",
            grid.dims, x.dims
        )));
    }
    let (batch, channels, spatial) = (x.dims[0], x.dims[1], &x.dims[2..]);
    let pixels: usize = spatial.iter().product();
    let points: usize = grid.dims[1..=rank].iter().product();
    // Channels last: a row for each pixel.
    let order: Vec<usize> = [0].into_iter().chain(2..rank + 2).chain([1]).collect();
    let source = convert(emit, x, ElementType::F32)?;
    let turned = emit.permute(&source, &order)?;
    let table = emit.node(&turned)?;
    let table = emit.builder.reshape(table, [batch * pixels, channels])?;
    let grid_node = emit.node(grid)?;
    let grid_node = emit.builder.reshape(grid_node, [batch * points, rank])?;
    // Combinations of the taps of the axes seen so far.
    let starts: Vec<i32> = (0..batch * points)
        .map(|point| (point / points) as i32)
        .collect();
    let mut taps = vec![Tap {
        place: emit
            .builder
            .integer_constant(&starts, [batch * points, 1])?,
        weight: None,
    }];
    for (axis, &size) in spatial.iter().enumerate() {
        // The grid names the last axis first.
        let at = emit.builder.slice(grid_node, 1, rank - 1 - axis, 1usize)?;
        let (factor, offset) = if aligns {
            ((size - 1) as f32 / 2.0, (size - 1) as f32 / 2.0)
        } else {
            (size as f32 / 2.0, (size - 1) as f32 / 2.0)
        };
        let scaled = emit.builder.scale(at, factor)?;
        let at = emit.with(BinaryOp::Add, scaled, offset)?;
        let own = emit.taps(at, size, mode, padding, aligns)?;
        let mut wider = Vec::new();
        for before in &taps {
            let start = emit.integer_with(IntegerOp::Mul, before.place, size)?;
            for tap in &own {
                let place = emit
                    .builder
                    .integer(IntegerOp::Add, start, Some(tap.place))?;
                let weight = match (before.weight, tap.weight) {
                    (Some(a), Some(b)) => Some(emit.builder.mul(a, b)?),
                    (a, b) => a.or(b),
                };
                wider.push(Tap { place, weight });
            }
        }
        taps = wider;
    }
    let y = weighted_rows(emit, table, &taps, batch * points)?;
    let mut dims = vec![batch];
    dims.extend(&grid.dims[1..=rank]);
    dims.push(channels);
    let y = emit.shaped(y, ElementType::F32, &dims)?;
    let y = emit.last_axis_to(&y, 1)?;
    Ok(vec![convert(emit, &y, x.element)?])
}

/// Sums of weighted rows.
fn weighted_rows(emit: &mut Emit<'_>, table: Node, taps: &[Tap], count: usize) -> Result<Node> {
    let mut sum: Option<Node> = None;
    for tap in taps {
        let places = emit.builder.reshape(tap.place, [count])?;
        let mut rows = emit.builder.gather(table, places)?;
        if let Some(weight) = tap.weight {
            rows = emit.builder.mul(rows, weight)?;
        }
        sum = Some(match sum {
            Some(sum) => emit.builder.add(sum, rows)?,
            None => rows,
        });
    }
    sum.ok_or_else(|| Error::data("samples of nothing"))
}

/// Places of [−1, 1] on every axis, moved by a matrix for each item.
fn affine_grid(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let theta = call.input(0)?;
    let size = sizes(call.known(1, "the size")?)?;
    let aligns = call.attributes.flag("align_corners", false)?;
    let rank = size.len().saturating_sub(2);
    if rank == 0 || theta.dims != [size[0], rank, rank + 1] || size.contains(&0) {
        return Err(Error::data(format!(
            "matrices {:?} for a size {size:?}",
            theta.dims
        )));
    }
    let spatial = &size[2..];
    let place = |at: usize, size: usize| match aligns {
        true if size == 1 => 0.0,
        true => 2.0 * at as f64 / (size - 1) as f64 - 1.0,
        false => (2 * at + 1) as f64 / size as f64 - 1.0,
    };
    let points: usize = spatial.iter().product();
    let mut grid = Vec::with_capacity(points * (rank + 1));
    for point in 0..points {
        let at = super::selection::coordinates(point, spatial);
        // The last axis comes first.
        grid.extend((0..rank).rev().map(|axis| place(at[axis], spatial[axis])));
        grid.push(1.0);
    }
    let grid = Array::wide(ElementType::F32, &[points, rank + 1], grid).into();
    let matrices = emit.permute(theta, &[0, 2, 1])?;
    let moved = product(emit, &grid, &matrices)?;
    let mut dims = vec![size[0]];
    dims.extend(spatial);
    dims.push(rank);
    let y = emit.reshape(&moved, &dims)?;
    Ok(vec![Value {
        element: theta.element,
        ..y
    }])
}

/// Maxima stored where a pooling found them, zeros elsewhere.
fn max_unpool(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, places) = (call.input(0)?, call.input(1)?);
    let rank = x.rank().saturating_sub(2);
    let kernel = for_axes(call, "kernel_shape", rank, 1)?;
    let (strides, pads) = (
        for_axes(call, "strides", rank, 1)?,
        for_axes(call, "pads", 2 * rank, 0)?,
    );
    if rank == 0 || places.dims != x.dims || x.len() == 0 {
        return Err(Error::data(format!(
            "places {:?} for {:?}",
            places.dims, x.dims
        )));
    }
    let size = |axis: usize| {
        ((x.dims[2 + axis] - 1) * strides[axis] + kernel[axis])
            .checked_sub(pads[axis] + pads[rank + axis])
            .filter(|size| *size > 0)
    };
    let spatial = (0..rank)
        .map(size)
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| Error::data(format!("pads {pads:?}")))?;
    let dims = [&x.dims[..2], &spatial].concat();
    let len = dims.iter().product();
    let table = emit.zeros(x.element, &[len, 1])?;
    let (rows, indices) = (emit.node(x)?, emit.node(places)?);
    let (rows, indices) = (
        emit.builder.reshape(rows, [x.len(), 1])?,
        emit.builder.reshape(indices, [x.len()])?,
    );
    let node = emit
        .builder
        .scatter(ScatterUpdate::Assign, table, indices, rows)?;
    let mut y = emit.shaped(node, x.element, &dims)?;
    let Some(wanted) = call.optional_known(2, "the output shape")? else {
        return Ok(vec![y]);
    };
    let wanted = sizes(wanted)?;
    if wanted.len() != dims.len() || wanted[..2] != dims[..2] {
        return Err(Error::data(format!("{dims:?} to {wanted:?}")));
    }
    // Zeros follow, or the end is cut off.
    for axis in 2..wanted.len() {
        let size = y.dims[axis];
        if wanted[axis] < size {
            let kept: Vec<usize> = (0..wanted[axis]).collect();
            y = emit.take(&y, axis, &kept)?;
        } else if wanted[axis] > size {
            let mut rest = y.dims.clone();
            rest[axis] = wanted[axis] - size;
            let rest = Array::wide(x.element, &rest, vec![0.0; rest.iter().product()]).into();
            y = emit.join(&[y, rest], axis)?;
        }
    }
    Ok(vec![y])
}

/// The samples of one axis of regions: [regions, samples] places and weights.
fn region_taps(emit: &mut Emit<'_>, at: Node, size: usize) -> Result<Vec<Tap>> {
    let (lowest, highest) = (emit.number(-1.0)?, emit.number(size as f32)?);
    let is_after = emit.builder.compare(Comparison::GreaterEqual, at, lowest)?;
    let is_before = emit.builder.compare(Comparison::LessEqual, at, highest)?;
    let is_inside = emit
        .builder
        .integer(IntegerOp::And, is_after, Some(is_before))?;
    let at = emit.with(BinaryOp::Max, at, 0.0)?;
    let at = emit.with(BinaryOp::Min, at, (size - 1) as f32)?;
    let first = emit.builder.function(Function::Floor, at)?;
    let t = emit.builder.sub(at, first)?;
    let place = emit.builder.convert(first, DType::I32)?;
    let next = emit.integer_with(IntegerOp::Add, place, 1)?;
    let next = emit.integer_with(IntegerOp::Min, next, size - 1)?;
    let rest = emit.builder.scale(t, -1.0)?;
    let rest = emit.with(BinaryOp::Add, rest, 1.0)?;
    let zero = emit.number(0.0)?;
    let mut taps = Vec::new();
    for (place, weight) in [(place, rest), (next, t)] {
        taps.push(Tap {
            place,
            weight: Some(emit.builder.select(is_inside, weight, zero)?),
        });
    }
    Ok(taps)
}

fn roi_align(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, rois, items) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let is_average = match call.attributes.string_or("mode", "avg")? {
        "avg" => true,
        "max" => false,
        other => return Err(Error::data(format!("mode {other:?}"))),
    };
    let default = if call.opset < 16 {
        "output_half_pixel"
    } else {
        "half_pixel"
    };
    let is_shifted = match call
        .attributes
        .string_or("coordinate_transformation_mode", default)?
    {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => {
            return Err(Error::data(format!(
                "coordinate_transformation_mode {other:?}"
            )));
        }
    };
    let scale = call.attributes.float_or("spatial_scale", 1.0)?;
    let size = |name: &'static str| -> Result<usize> {
        let size = call.attributes.int_or(name, 1)?;
        usize::try_from(size)
            .ok()
            .filter(|size| *size > 0)
            .ok_or_else(|| Error::data(format!("{name} {size}")))
    };
    let bins = [size("output_height")?, size("output_width")?];
    let samples = usize::try_from(call.attributes.int_or("sampling_ratio", 0)?).unwrap_or(0);
    if samples == 0 {
        return Err(Error::unsupported(
            "sampling_ratio 0: the number of samples would depend on the regions",
        ));
    }
    let (&[batch, channels, height, width], &[count, 4]) = (&x.dims[..], &rois.dims[..]) else {
        return Err(Error::data(format!(
            "regions {:?} of {:?}",
            rois.dims, x.dims
        )));
    };
    if items.dims != [count] || x.len() == 0 || count == 0 {
        return Err(Error::data(format!(
            "{:?} items for {count} regions",
            items.dims
        )));
    }
    let turned = emit.permute(x, &[0, 2, 3, 1])?;
    let table = emit.node(&turned)?;
    let table = emit
        .builder
        .reshape(table, [batch * height * width, channels])?;
    let corners = emit.node(rois)?;
    let corners = emit.builder.scale(corners, scale)?;
    let corners = if is_shifted {
        emit.with(BinaryOp::Sub, corners, 0.5)?
    } else {
        corners
    };
    let mut axes = Vec::new();
    for (axis, size) in [height, width].into_iter().enumerate() {
        let start = emit.builder.slice(corners, 1, 1 - axis, 1usize)?;
        let end = emit.builder.slice(corners, 1, 3 - axis, 1usize)?;
        let mut extent = emit.builder.sub(end, start)?;
        if !is_shifted {
            extent = emit.with(BinaryOp::Max, extent, 1.0)?;
        }
        let total = bins[axis] * samples;
        let parts: Vec<f64> = (0..total)
            .map(|sample| (sample as f64 + 0.5) / total as f64)
            .collect();
        let parts: Value = Array::wide(ElementType::F32, &[1, total], parts).into();
        let parts = emit.node(&parts)?;
        let offsets = emit.builder.mul(extent, parts)?;
        let at = emit.builder.add(offsets, start)?;
        axes.push(region_taps(emit, at, size)?);
    }
    let [rows, cols] = bins.map(|bins| bins * samples);
    let total = count * rows * cols;
    let items = emit.input(call, 2)?;
    let items = emit.builder.reshape(items, [count, 1, 1])?;
    let mut terms = Vec::new();
    for (y, x) in axes[0]
        .iter()
        .flat_map(|y| axes[1].iter().map(move |x| (y, x)))
    {
        let along =
            |emit: &mut Emit<'_>, node: Node, dims: [usize; 3]| emit.builder.reshape(node, dims);
        let (y_place, x_place) = (
            along(emit, y.place, [count, rows, 1])?,
            along(emit, x.place, [count, 1, cols])?,
        );
        let row = emit.integer_with(IntegerOp::Mul, items, height)?;
        let row = emit.builder.integer(IntegerOp::Add, row, Some(y_place))?;
        let row = emit.integer_with(IntegerOp::Mul, row, width)?;
        let place = emit.builder.integer(IntegerOp::Add, row, Some(x_place))?;
        let weight = match (y.weight, x.weight) {
            (Some(a), Some(b)) => {
                let (a, b) = (
                    along(emit, a, [count, rows, 1])?,
                    along(emit, b, [count, 1, cols])?,
                );
                let weight = emit.builder.mul(a, b)?;
                Some(emit.builder.reshape(weight, [total, 1])?)
            }
            (a, b) => a.or(b),
        };
        terms.push(weighted_rows(emit, table, &[Tap { place, weight }], total)?);
    }
    let combine = if is_average {
        BinaryOp::Add
    } else {
        BinaryOp::Max
    };
    let mut node = terms[0];
    for term in &terms[1..] {
        node = emit.builder.binary(combine, node, *term)?;
    }
    let [height, width] = bins;
    let node = emit.builder.reshape(
        node,
        shape(&[count, height, samples, width, samples, channels])?,
    )?;
    let node = emit.builder.reduce_axes(
        if is_average {
            Reduction::Sum
        } else {
            Reduction::Max
        },
        node,
        &[2, 4],
    )?;
    let node = if is_average {
        emit.with(BinaryOp::Div, node, (samples * samples) as f32)?
    } else {
        node
    };
    let y = emit.shaped(node, x.element, &[count, height, width, channels])?;
    Ok(vec![emit.permute(&y, &[0, 3, 1, 2])?])
}

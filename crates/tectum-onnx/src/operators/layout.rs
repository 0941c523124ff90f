//! Operators that move elements.

use std::ops::Range;

use tectum::{Error, Result};
use tectum_graph::{Comparison, IntegerOp, Node};

use super::Family;
use super::constants::sizes;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Source, Value, made, normal_axis, shape};

pub(super) const FAMILY: Family = &[
    ("Compress", compress),
    ("Concat", concat),
    ("DepthToSpace", depth_to_space),
    ("Expand", expand),
    ("Flatten", flatten),
    ("Gather", gather),
    ("GatherElements", gather_elements),
    ("GatherND", gather_nd),
    ("OneHot", one_hot),
    ("Pad", pad),
    ("Reshape", reshape),
    ("ReverseSequence", reverse_sequence),
    ("Slice", slice),
    ("SpaceToDepth", space_to_depth),
    ("Split", split),
    ("Squeeze", squeeze),
    ("Tile", tile),
    ("Transpose", transpose),
    ("Trilu", trilu),
    ("Unsqueeze", unsqueeze),
];

impl Emit<'_> {
    /// A value in another shape of as many elements.
    pub fn reshape(&mut self, value: &Value, dims: &[usize]) -> Result<Value> {
        if dims
            .iter()
            .try_fold(1usize, |product, dim| product.checked_mul(*dim))
            != Some(value.len())
        {
            return Err(Error::data(format!(
                "{:?} reshaped to {dims:?}",
                value.dims
            )));
        }
        if let Source::Known(array) = &value.source {
            return Ok(array.reshaped(dims).into());
        }
        let node = self.node(value)?;
        self.shaped(node, value.element, dims)
    }

    /// The places `indices` of an axis, known when the model is loaded.
    pub fn take(&mut self, value: &Value, axis: usize, indices: &[usize]) -> Result<Value> {
        let size = value.dims.get(axis).copied().unwrap_or(0);
        if let Some(index) = indices.iter().find(|index| **index >= size) {
            return Err(Error::data(format!(
                "place {index} of axis {axis} of {:?}",
                value.dims
            )));
        }
        if axis >= value.rank() {
            return Err(Error::data(format!("axis {axis} of {:?}", value.dims)));
        }
        let mut dims = value.dims.clone();
        dims[axis] = indices.len();
        if let Some(&start) = indices.first()
            && value.array().is_none()
            && indices.windows(2).all(|pair| pair[0] + 1 == pair[1])
        {
            return self.run(value, axis, start..start + indices.len());
        }
        if let Source::Known(array) = &value.source {
            self.spend(made(&dims)?)?;
            let (outer, inner): (usize, usize) = (
                value.dims[..axis].iter().product(),
                value.dims[axis + 1..].iter().product(),
            );
            return Ok(array.taken(&dims, [outer, size, inner], indices).into());
        }
        if dims.contains(&0) {
            return Err(Error::unsupported(format!(
                "a tensor of {dims:?}, without elements, while the network runs"
            )));
        }
        let outer: usize = value.dims[..axis].iter().product();
        self.list(&[outer, indices.len()])?;
        let node = self.node(value)?;
        let taken = self.builder.take(node, axis, indices)?;
        self.value(taken, value.element)
    }

    /// The places `places` of an axis.
    pub fn run(&mut self, value: &Value, axis: usize, places: Range<usize>) -> Result<Value> {
        let size = value.dims.get(axis).copied().unwrap_or(0);
        if axis >= value.rank() || places.end > size || places.start > places.end {
            return Err(Error::data(format!(
                "places {places:?} of axis {axis} of {:?}",
                value.dims
            )));
        }
        if places == (0..size) {
            return Ok(value.clone());
        }
        if places.is_empty() || value.array().is_some() {
            return self.take(value, axis, &places.collect::<Vec<_>>());
        }
        let node = self.node(value)?;
        let node = self.builder.slice(node, axis, places.start, places.len())?;
        self.value(node, value.element)
    }

    /// The elements with these numbers, counted over the whole value.
    fn take_elements(&mut self, value: &Value, places: Node, dims: &[usize]) -> Result<Value> {
        let node = self.node(value)?;
        let (len, count) = (value.len(), dims.iter().product::<usize>());
        let (table, places) = (
            self.builder.reshape(node, [len, 1])?,
            self.builder.reshape(places, [count])?,
        );
        let taken = self.builder.gather(table, places)?;
        self.shaped(taken, value.element, dims)
    }

    /// Numbers in 0 .. size: negative ones count from the end.
    fn nonnegative(&mut self, indices: Node, size: usize) -> Result<Node> {
        let (zero, size) = (self.integer(0)?, self.integer(size as i32)?);
        let is_negative = self.builder.compare(Comparison::Less, indices, zero)?;
        let raised = self.builder.integer(IntegerOp::Add, indices, Some(size))?;
        self.builder.select(is_negative, raised, indices)
    }

    fn scaled_integers(&mut self, node: Node, factor: usize) -> Result<Node> {
        let factor = self.integer(factor as i32)?;
        self.builder.integer(IntegerOp::Mul, node, Some(factor))
    }

    /// A value with its axes in another order.
    pub fn permute(&mut self, value: &Value, order: &[usize]) -> Result<Value> {
        let node = self.node(value)?;
        let node = self.builder.permute(node, order)?;
        self.value(node, value.element)
    }

    /// A value repeated to a shape.
    pub fn repeat(&mut self, value: &Value, dims: &[usize]) -> Result<Value> {
        if value.dims == dims {
            return Ok(value.clone());
        }
        let node = self.node(value)?;
        let node = self.builder.broadcast(node, shape(dims)?)?;
        self.value(node, value.element)
    }

    /// Values one after another along an axis.
    pub fn join(&mut self, parts: &[Value], axis: usize) -> Result<Value> {
        let filled: Vec<&Value> = parts.iter().filter(|part| part.len() > 0).collect();
        let first = parts
            .first()
            .ok_or_else(|| Error::data("nothing to concatenate"))?;
        let mut dims = first.dims.clone();
        for part in &parts[1..] {
            if part.rank() != dims.len()
                || (0..dims.len()).any(|other| other != axis && part.dims[other] != dims[other])
                || part.element != first.element
            {
                return Err(Error::data(format!(
                    "{:?} {} and {:?} {} along axis {axis}",
                    dims, first.element, part.dims, part.element
                )));
            }
            dims[axis] = dims[axis].saturating_add(part.dims[axis]);
        }
        match &filled[..] {
            [] => Ok(Array::wide(first.element, &dims, Vec::new()).into()),
            [one] => Ok((*one).clone()),
            filled => {
                if let Some(known) = filled
                    .iter()
                    .map(|part| part.array())
                    .collect::<Option<Vec<_>>>()
                {
                    self.spend(made(&dims)?)?;
                    return Ok(Array::joined(&known, &dims, axis).into());
                }
                let nodes = filled
                    .iter()
                    .map(|part| self.node(part))
                    .collect::<Result<Vec<_>>>()?;
                let node = self.builder.concat(&nodes, axis)?;
                self.value(node, first.element)
            }
        }
    }
}

fn compress(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let axis = call.attributes.int("axis")?;
    let condition = call.known(1, "the condition")?;
    let x = call.input(0)?;
    let (value, axis) = match axis {
        Some(axis) => (x.clone(), x.axis(axis)?),
        None => (emit.reshape(x, &[x.len()])?, 0),
    };
    let chosen: Vec<usize> = condition
        .to_f64()
        .iter()
        .enumerate()
        .filter(|(_, value)| **value != 0.0)
        .map(|(place, _)| place)
        .collect();
    if chosen.last().is_some_and(|last| *last >= value.dims[axis]) {
        return Err(Error::data(format!(
            "a condition of {} for axis {axis} of {:?}",
            condition.len(),
            value.dims
        )));
    }
    Ok(vec![emit.take(&value, axis, &chosen)?])
}

fn concat(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let parts: Vec<Value> = call.inputs.iter().flatten().cloned().collect();
    let axis = match call.attributes.int("axis")? {
        None if call.opset < 4 => 1,
        axis => axis.ok_or_else(|| Error::data("attribute axis is missing"))?,
    };
    let axis = call.input(0)?.axis(axis)?;
    Ok(vec![emit.join(&parts, axis)?])
}

/// Sizes of an image [N, C, H, W] and a block that divides `divided` of them.
fn block(call: &Call<'_>) -> Result<([usize; 4], usize)> {
    let size = call
        .attributes
        .int("blocksize")?
        .and_then(|size| usize::try_from(size).ok())
        .filter(|size| *size > 0 && *size <= 1 << 16);
    let dims = call.input(0)?.dims.clone();
    let dims = <[usize; 4]>::try_from(dims)
        .map_err(|dims| Error::data(format!("{dims:?} has no four dimensions")))?;
    Ok((
        dims,
        size.ok_or_else(|| Error::data("attribute blocksize is missing"))?,
    ))
}

fn depth_to_space(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let ([n, c, h, w], b) = block(call)?;
    if !c.is_multiple_of(b * b) {
        return Err(Error::data(format!("{c} channels in blocks of {b}×{b}")));
    }
    let deep = c / b / b;
    let (dims, order) = match call.attributes.string_or("mode", "DCR")? {
        "DCR" => ([n, b, b, deep, h, w], [0, 3, 4, 1, 5, 2]),
        "CRD" => ([n, deep, b, b, h, w], [0, 1, 4, 2, 5, 3]),
        other => return Err(Error::data(format!("mode {other:?}"))),
    };
    let split = emit.reshape(call.input(0)?, &dims)?;
    let turned = emit.permute(&split, &order)?;
    Ok(vec![emit.reshape(&turned, &[n, deep, h * b, w * b])?])
}

fn space_to_depth(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let ([n, c, h, w], b) = block(call)?;
    if !h.is_multiple_of(b) || !w.is_multiple_of(b) {
        return Err(Error::data(format!("{h}×{w} in blocks of {b}×{b}")));
    }
    let (dims, order) = match call.attributes.string_or("mode", "DCR")? {
        "DCR" => ([n, c, h / b, b, w / b, b], [0, 3, 5, 1, 2, 4]),
        "CRD" => ([n, c, h / b, b, w / b, b], [0, 1, 3, 5, 2, 4]),
        other => return Err(Error::data(format!("mode {other:?}"))),
    };
    let split = emit.reshape(call.input(0)?, &dims)?;
    let turned = emit.permute(&split, &order)?;
    Ok(vec![emit.reshape(&turned, &[n, c * b * b, h / b, w / b])?])
}

fn expand(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let dims = crate::emit::joint([&x.dims[..], &sizes(call.known(1, "the shape")?)?])?;
    Ok(vec![emit.repeat(x, &dims)?])
}

fn flatten(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axis = call.attributes.int_or("axis", 1)?;
    let axis = if axis == x.rank() as i64 {
        x.rank()
    } else {
        x.axis(axis)?
    };
    let (rows, cols) = x.dims.split_at(axis);
    Ok(vec![emit.reshape(
        x,
        &[rows.iter().product(), cols.iter().product()],
    )?])
}

fn gather(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let axis = x.axis(call.attributes.int_or("axis", 0)?)?;
    let size = x.dims[axis];
    let dims = [&x.dims[..axis], &indices.dims, &x.dims[axis + 1..]].concat();
    if let Some(known) = indices.array() {
        let places = known
            .to_i64()
            .into_iter()
            .map(|index| normal_axis(index, size))
            .collect::<Result<Vec<_>>>();
        let places = places
            .map_err(|_| Error::data(format!("an index beyond axis {axis} of {:?}", x.dims)))?;
        let taken = emit.take(x, axis, &places)?;
        return Ok(vec![emit.reshape(&taken, &dims)?]);
    }
    let (outer, inner, count): (usize, usize, usize) = (
        x.dims[..axis].iter().product(),
        x.dims[axis + 1..].iter().product(),
        indices.len(),
    );
    let node = emit.node(indices)?;
    let mut rows = emit.nonnegative(node, size)?;
    if outer > 1 {
        emit.list(&[outer])?;
        let starts: Vec<i32> = (0..outer).map(|outer| (outer * size) as i32).collect();
        let (flat, starts) = (
            emit.builder.reshape(rows, [1, count])?,
            emit.builder.integer_constant(&starts, [outer, 1])?,
        );
        rows = emit.builder.integer(IntegerOp::Add, flat, Some(starts))?;
    }
    let rows = emit.builder.reshape(rows, [outer * count])?;
    let table = emit.node(x)?;
    let table = emit.builder.reshape(table, [outer * size, inner])?;
    let taken = emit.builder.gather(table, rows)?;
    Ok(vec![emit.shaped(taken, x.element, &dims)?])
}

/// The number of each element of `dims`, as if its place on `axis` were 0, in a value of the sizes
/// `whole`.
fn bases(dims: &[usize], whole: &[usize], axis: usize) -> Vec<i32> {
    let strides: Vec<usize> = (0..whole.len())
        .map(|axis| whole[axis + 1..].iter().product())
        .collect();
    let own: Vec<usize> = (0..dims.len())
        .map(|axis| dims[axis + 1..].iter().product())
        .collect();
    let number = |place: usize| {
        (0..dims.len())
            .filter(|other| *other != axis)
            .map(|axis| place / own[axis] % dims[axis] * strides[axis])
            .sum::<usize>()
    };
    (0..dims.iter().product())
        .map(|place| number(place) as i32)
        .collect()
}

/// The numbers of the elements that indices on an axis name.
pub(super) fn element_places(
    emit: &mut Emit<'_>,
    x: &Value,
    indices: &Value,
    axis: usize,
) -> Result<Node> {
    if indices.rank() != x.rank()
        || (0..x.rank()).any(|other| other != axis && indices.dims[other] > x.dims[other])
    {
        return Err(Error::data(format!(
            "indices {:?} for {:?}",
            indices.dims, x.dims
        )));
    }
    let node = emit.node(indices)?;
    let places = emit.nonnegative(node, x.dims[axis])?;
    let scaled = emit.scaled_integers(places, x.dims[axis + 1..].iter().product())?;
    emit.list(&indices.dims)?;
    let bases = emit
        .builder
        .integer_constant(&bases(&indices.dims, &x.dims, axis), shape(&indices.dims)?)?;
    emit.builder.integer(IntegerOp::Add, scaled, Some(bases))
}

fn gather_elements(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let axis = x.axis(call.attributes.int_or("axis", 0)?)?;
    let places = element_places(emit, x, indices, axis)?;
    Ok(vec![emit.take_elements(x, places, &indices.dims)?])
}

/// The row that each tuple of indices names: the numbers, how many there are, and the elements of a
/// row.
pub(super) fn row_places(
    emit: &mut Emit<'_>,
    x: &Value,
    indices: &Value,
    batch: usize,
) -> Result<(Node, usize, usize)> {
    let fault = || {
        Error::data(format!(
            "indices {:?} for {:?} with {batch} batch dimensions",
            indices.dims, x.dims
        ))
    };
    let (&depth, before) = indices.dims.split_last().ok_or_else(fault)?;
    if batch + depth > x.rank() || before.len() < batch || before[..batch] != x.dims[..batch] {
        return Err(fault());
    }
    let inner: usize = x.dims[batch + depth..].iter().product();
    let count: usize = before.iter().product();
    let node = emit.node(indices)?;
    emit.list(&[count])?;
    let tuples = emit.builder.reshape(node, [count, depth])?;
    let mut rows = emit.builder.integer_constant(&vec![0; count], [count, 1])?;
    for place in 0..depth {
        let column = emit.builder.slice(tuples, 1, place, 1usize)?;
        let column = emit.nonnegative(column, x.dims[batch + place])?;
        let stride: usize = x.dims[batch + place + 1..batch + depth].iter().product();
        let scaled = emit.scaled_integers(column, stride)?;
        rows = emit.builder.integer(IntegerOp::Add, rows, Some(scaled))?;
    }
    if batch > 0 {
        let (batches, rows_of_batch): (usize, usize) = (
            x.dims[..batch].iter().product(),
            x.dims[batch..batch + depth].iter().product(),
        );
        let per_batch = count / batches.max(1);
        let starts: Vec<i32> = (0..count)
            .map(|place| (place / per_batch * rows_of_batch) as i32)
            .collect();
        let starts = emit.builder.integer_constant(&starts, [count, 1])?;
        rows = emit.builder.integer(IntegerOp::Add, rows, Some(starts))?;
    }
    Ok((emit.builder.reshape(rows, [count])?, count, inner))
}

fn gather_nd(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let batch = usize::try_from(call.attributes.int_or("batch_dims", 0)?)
        .map_err(|_| Error::data("batch_dims is negative"))?;
    let (rows, _, inner) = row_places(emit, x, indices, batch)?;
    let depth = indices.dims.last().copied().unwrap_or(0);
    let dims = [
        &indices.dims[..indices.rank() - 1],
        &x.dims[batch + depth..],
    ]
    .concat();
    if inner == 0 {
        return Err(Error::data(format!(
            "rows of {:?} without elements",
            x.dims
        )));
    }
    let table = emit.node(x)?;
    let table = emit.builder.reshape(table, [x.len() / inner, inner])?;
    let taken = emit.builder.gather(table, rows)?;
    Ok(vec![emit.shaped(taken, x.element, &dims)?])
}

fn one_hot(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let indices = super::constants::convert(emit, call.input(0)?, ElementType::I64)?;
    let depth = call
        .known(1, "the depth")?
        .to_i64()
        .first()
        .copied()
        .unwrap_or(0);
    let depth = usize::try_from(depth)
        .ok()
        .filter(|depth| *depth > 0)
        .ok_or_else(|| Error::data(format!("depth {depth}")))?;
    let axis = normal_axis(call.attributes.int_or("axis", -1)?, indices.rank() + 1)?;
    emit.list(&[depth])?;
    let values = call.input(2)?;
    let node = emit.node(&indices)?;
    let places = emit.nonnegative(node, depth)?;
    let mut dims = indices.dims.clone();
    dims.insert(axis, 1);
    let places = emit.builder.reshape(places, shape(&dims)?)?;
    let mut along = vec![1; dims.len()];
    along[axis] = depth;
    let classes: Vec<i32> = (0..depth as i32).collect();
    let classes = emit.builder.integer_constant(&classes, shape(&along)?)?;
    let is_on = emit.builder.compare(Comparison::Equal, places, classes)?;
    let pair = emit.node(values)?;
    let [off, on] = [
        emit.builder.slice(pair, 0, 0, 1usize)?,
        emit.builder.slice(pair, 0, 1, 1usize)?,
    ];
    let node = emit.builder.select(is_on, on, off)?;
    Ok(vec![emit.value(node, values.element)?])
}

/// Elements added before and after each axis; negative ones are cut off.
fn pad(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let pads = call
        .ints(1, if call.opset < 2 { "paddings" } else { "pads" })?
        .ok_or_else(|| Error::data("pads are missing"))?;
    let axes = match call.optional_known(3, "the axes")? {
        Some(axes) => axes
            .to_i64()
            .into_iter()
            .map(|axis| x.axis(axis))
            .collect::<Result<Vec<_>>>()?,
        None => (0..x.rank()).collect(),
    };
    if pads.len() != 2 * axes.len() {
        return Err(Error::data(format!(
            "{} pads for {} axes",
            pads.len(),
            axes.len()
        )));
    }
    let fill = match (call.attributes.float("value")?, call.optional(2)) {
        (Some(value), _) => Array::scalar(x.element, value.into()).into(),
        (None, Some(value)) => emit.reshape(value, &[])?,
        (None, None) => Array::scalar(x.element, 0.0).into(),
    };
    let mode = call.attributes.string_or("mode", "constant")?;
    let mut value = x.clone();
    for (place, &axis) in axes.iter().enumerate() {
        value = pad_axis(
            emit,
            &value,
            axis,
            [pads[place], pads[axes.len() + place]],
            mode,
            &fill,
        )?;
    }
    Ok(vec![value])
}

fn pad_axis(
    emit: &mut Emit<'_>,
    value: &Value,
    axis: usize,
    pads: [i64; 2],
    mode: &str,
    fill: &Value,
) -> Result<Value> {
    let size = value.dims[axis] as i64;
    let fault = || Error::data(format!("pads {pads:?} of axis {axis} of {:?}", value.dims));
    if pads
        .iter()
        .any(|pad| pad.unsigned_abs() > u64::from(u32::MAX))
        || size + pads[0] + pads[1] < 0
    {
        return Err(fault());
    }
    if mode == "constant" {
        let [cut, added] = [
            pads.map(|pad| (-pad).max(0) as usize),
            pads.map(|pad| pad.max(0) as usize),
        ];
        // More than all may be cut off at one end if the other end is extended.
        let end = (size as usize).saturating_sub(cut[1]);
        let inner = emit.run(value, axis, cut[0].min(end)..end)?;
        let mut parts = vec![inner];
        for (at_end, count) in [(false, added[0]), (true, added[1])] {
            if count > 0 {
                let mut dims = value.dims.clone();
                dims[axis] = count;
                let block = match fill.array() {
                    Some(fill) => emit.filled(value.element, &dims, fill.to_f64()[0])?.into(),
                    None => emit.repeat(fill, &dims)?,
                };
                if at_end {
                    parts.push(block)
                } else {
                    parts.insert(0, block)
                }
            }
        }
        return emit.join(&parts, axis);
    }
    if size == 0 {
        return Err(fault());
    }
    let place = |at: i64| match mode {
        "edge" => Ok(at.clamp(0, size - 1)),
        "wrap" => Ok(at.rem_euclid(size)),
        "reflect" if size == 1 => Ok(0),
        "reflect" => {
            let at = at.rem_euclid(2 * size - 2);
            Ok(if at < size { at } else { 2 * size - 2 - at })
        }
        other => Err(Error::data(format!("mode {other:?}"))),
    };
    emit.list(&[(size + pads[0] + pads[1]) as usize])?;
    let indices = (-pads[0]..size + pads[1])
        .map(|at| place(at).map(|at| at as usize))
        .collect::<Result<Vec<_>>>()?;
    if pads == [0, 0] {
        Ok(value.clone())
    } else {
        emit.take(value, axis, &indices)
    }
}

fn reshape(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let target = call
        .ints(1, "shape")?
        .ok_or_else(|| Error::data("the shape is missing"))?;
    let keeps_zero = call.attributes.flag("allowzero", false)?;
    let fault = || Error::data(format!("{:?} reshaped to {target:?}", x.dims));
    let mut dims = Vec::new();
    for (axis, size) in target.iter().enumerate() {
        dims.push(match *size {
            -1 => 1,
            0 if !keeps_zero => *x.dims.get(axis).ok_or_else(fault)?,
            size => usize::try_from(size).map_err(|_| fault())?,
        });
    }
    if let Some(free) = target.iter().position(|size| *size == -1) {
        let known = dims
            .iter()
            .try_fold(1usize, |product, dim| product.checked_mul(*dim))
            .filter(|known| *known > 0)
            .ok_or_else(fault)?;
        dims[free] = x.len() / known;
    }
    Ok(vec![emit.reshape(x, &dims)?])
}

fn reverse_sequence(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (time, batch) = (
        x.axis(call.attributes.int_or("time_axis", 0)?)?,
        x.axis(call.attributes.int_or("batch_axis", 1)?)?,
    );
    let lengths = call.known(1, "the lengths")?.to_i64();
    if lengths.len() != x.dims[batch] || time == batch {
        return Err(Error::data(format!(
            "{} lengths for axis {batch} of {:?}",
            lengths.len(),
            x.dims
        )));
    }
    emit.list(&[x.dims[batch], x.dims[time]])?;
    let mut parts = Vec::new();
    for (item, len) in lengths.into_iter().enumerate() {
        let part = emit.take(x, batch, &[item])?;
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= x.dims[time])
            .ok_or_else(|| Error::data(format!("length {len}")))?;
        let order: Vec<usize> = (0..len).rev().chain(len..x.dims[time]).collect();
        parts.push(emit.take(&part, time, &order)?);
    }
    Ok(vec![emit.join(&parts, batch)?])
}

fn slice(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let needed = |ints: Option<Vec<i64>>, what| {
        ints.ok_or_else(|| Error::data(format!("{what} are missing")))
    };
    let (starts, ends) = (
        needed(call.ints(1, "starts")?, "starts")?,
        needed(call.ints(2, "ends")?, "ends")?,
    );
    let axes = call
        .ints(3, "axes")?
        .unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = call
        .optional_known(4, "the steps")?
        .map_or_else(|| vec![1; starts.len()], Array::to_i64);
    if ends.len() != starts.len() || axes.len() != starts.len() || steps.len() != starts.len() {
        return Err(Error::data(format!(
            "starts {starts:?}, ends {ends:?}, axes {axes:?}, steps {steps:?}"
        )));
    }
    let mut value = x.clone();
    for (((start, end), axis), step) in starts.into_iter().zip(ends).zip(axes).zip(steps) {
        let axis = x.axis(axis)?;
        let size = x.dims[axis] as i64;
        let place = |at: i64, low: i64, high: i64| {
            if at < 0 { at.saturating_add(size) } else { at }.clamp(low, high)
        };
        if step == 1 {
            let (start, end) = (place(start, 0, size), place(end, 0, size));
            value = emit.run(&value, axis, start as usize..end.max(start) as usize)?;
            continue;
        }
        emit.list(&[x.dims[axis]])?;
        let indices: Vec<usize> = match step {
            0 => return Err(Error::data("a step of 0")),
            1.. => (place(start, 0, size)..place(end, 0, size))
                .step_by(usize::try_from(step).unwrap_or(usize::MAX))
                .map(|at| at as usize)
                .collect(),
            _ => {
                let (start, end) = (
                    place(start, -1, size - 1),
                    if end == i64::MIN {
                        -1
                    } else {
                        place(end, -1, size - 1)
                    },
                );
                let step = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
                ((end + 1)..=start)
                    .rev()
                    .step_by(step)
                    .map(|at| at as usize)
                    .collect()
            }
        };
        value = emit.take(&value, axis, &indices)?;
    }
    Ok(vec![value])
}

fn split(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axis = x.axis(call.attributes.int_or("axis", 0)?)?;
    let size = x.dims[axis];
    let given = call.ints(1, "split")?;
    let count = call
        .attributes
        .int("num_outputs")?
        .map_or(call.outputs.len(), |count| {
            usize::try_from(count).unwrap_or(0)
        });
    let parts: Vec<usize> = match given {
        Some(parts) => parts
            .into_iter()
            .map(|part| usize::try_from(part).unwrap_or(usize::MAX))
            .collect(),
        None if count > 1 << 16 => return Err(Error::data(format!("{count} outputs"))),
        None if count == 0 => return Err(Error::data("no outputs")),
        None => {
            let chunk = size.div_ceil(count);
            (0..count)
                .map(|part| chunk.min(size.saturating_sub(part * chunk)))
                .collect()
        }
    };
    if parts
        .iter()
        .try_fold(0usize, |sum, part| sum.checked_add(*part))
        != Some(size)
    {
        return Err(Error::data(format!(
            "axis {axis} of {:?} in parts {parts:?}",
            x.dims
        )));
    }
    let mut start = 0;
    let mut values = Vec::new();
    for part in parts {
        values.push(emit.run(x, axis, start..start + part)?);
        start += part;
    }
    Ok(values)
}

fn squeeze(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axes = match call.ints(1, "axes")? {
        Some(axes) => axes
            .into_iter()
            .map(|axis| x.axis(axis))
            .collect::<Result<Vec<_>>>()?,
        None => (0..x.rank()).filter(|axis| x.dims[*axis] == 1).collect(),
    };
    if axes.iter().any(|axis| x.dims[*axis] != 1) {
        return Err(Error::data(format!(
            "axes {axes:?} of {:?} are not all 1",
            x.dims
        )));
    }
    let dims: Vec<usize> = (0..x.rank())
        .filter(|axis| !axes.contains(axis))
        .map(|axis| x.dims[axis])
        .collect();
    Ok(vec![emit.reshape(x, &dims)?])
}

fn unsqueeze(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axes = call
        .ints(1, "axes")?
        .ok_or_else(|| Error::data("axes are missing"))?;
    let rank = x.rank() + axes.len();
    let mut axes = axes
        .into_iter()
        .map(|axis| normal_axis(axis, rank))
        .collect::<Result<Vec<_>>>()?;
    axes.sort_unstable();
    axes.dedup();
    if axes.len() + x.rank() != rank {
        return Err(Error::data("an axis is named twice"));
    }
    let mut dims = x.dims.clone();
    axes.into_iter().for_each(|axis| dims.insert(axis, 1));
    Ok(vec![emit.reshape(x, &dims)?])
}

fn tile(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let mut repeats = sizes(call.known(1, "the repeats")?)?;
    if call.opset < 6 {
        // The number of repetitions and the axis.
        let axis = call
            .known(2, "the axis")?
            .to_i64()
            .first()
            .copied()
            .unwrap_or(0);
        let axis = x.axis(axis)?;
        let count = repeats.first().copied().unwrap_or(1);
        repeats = (0..x.rank())
            .map(|other| if other == axis { count } else { 1 })
            .collect();
    }
    if repeats.len() != x.rank() {
        return Err(Error::data(format!("{:?} repeated {repeats:?}", x.dims)));
    }
    let mut value = x.clone();
    for (axis, repeats) in repeats
        .into_iter()
        .enumerate()
        .filter(|(_, repeats)| *repeats != 1)
    {
        let mut dims = value.dims.clone();
        dims[axis] = dims[axis].saturating_mul(repeats);
        if dims[axis] == 0 {
            value = Array::wide(x.element, &dims, Vec::new()).into();
            continue;
        }
        let (outer, rest): (usize, usize) = (
            value.dims[..axis].iter().product(),
            value.dims[axis..].iter().product(),
        );
        let rows = emit.reshape(&value, &[outer, 1, rest])?;
        let repeated = emit.repeat(&rows, &[outer, repeats, rest])?;
        value = emit.reshape(&repeated, &dims)?;
    }
    Ok(vec![value])
}

fn transpose(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let order = match call.attributes.ints("perm")? {
        Some(order) => order
            .into_iter()
            .map(|axis| x.axis(axis))
            .collect::<Result<Vec<_>>>()?,
        None => (0..x.rank()).rev().collect(),
    };
    Ok(vec![emit.permute(x, &order)?])
}

fn trilu(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let is_upper = call.attributes.flag("upper", true)?;
    let shift = call
        .optional_known(1, "the diagonal")?
        .map_or(0, |array| array.to_i64().first().copied().unwrap_or(0));
    let &[.., rows, cols] = &x.dims[..] else {
        return Err(Error::data(format!("{:?} is no matrix", x.dims)));
    };
    let is_kept = |place: usize| {
        let beyond = (place % cols) as i64 - ((place / cols) as i64).saturating_add(shift);
        i32::from(if is_upper { beyond >= 0 } else { beyond <= 0 })
    };
    emit.list(&[rows, cols])?;
    let mask: Vec<i32> = (0..rows * cols).map(is_kept).collect();
    let mask = emit.builder.integer_constant(&mask, [rows, cols])?;
    let node = emit.node(x)?;
    let zero = if x.element.is_float() {
        emit.number(0.0)?
    } else {
        emit.integer(0)?
    };
    let node = emit.builder.select(mask, node, zero)?;
    Ok(vec![emit.shaped(node, x.element, &x.dims)?])
}

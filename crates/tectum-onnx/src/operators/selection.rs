//! Operators that choose elements, store them by their numbers, or run along an axis.

use std::cmp::Ordering;

use tectum::operation::reduce::top_k::MAX_K;
use tectum::{DType, Error, Result, ScatterUpdate};
use tectum_graph::{Comparison, Function, IntegerOp, Node, Reduction};

use super::Family;
use super::constants::sizes;
use super::layout::{element_places, row_places};
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value, normal_axis, shape};

pub(super) const FAMILY: Family = &[
    ("CenterCropPad", center_crop_pad),
    ("Col2Im", col_to_im),
    ("CumProd", cumprod),
    ("CumSum", cumsum),
    ("NonMaxSuppression", non_max_suppression),
    ("Scatter", scatter_elements),
    ("ScatterElements", scatter_elements),
    ("ScatterND", scatter_nd),
    ("TensorScatter", tensor_scatter),
    ("TopK", top_k),
    ("Unique", unique),
];

/// Pairs of elements that are compared to rank the elements of rows.
const MAX_PAIRS: usize = 1 << 28;

impl Emit<'_> {
    /// A value with an axis moved to the end.
    pub fn axis_last(&mut self, value: &Value, axis: usize) -> Result<Value> {
        let order: Vec<usize> = (0..value.rank())
            .filter(|other| *other != axis)
            .chain([axis])
            .collect();
        self.permute(value, &order)
    }

    /// A value with its last axis moved to a place.
    pub fn last_axis_to(&mut self, value: &Value, axis: usize) -> Result<Value> {
        let last = value.rank() - 1;
        let order: Vec<usize> = (0..axis).chain([last]).chain(axis..last).collect();
        self.permute(value, &order)
    }

    /// Zeros of a type, as a node.
    pub fn zeros(&mut self, element: ElementType, dims: &[usize]) -> Result<Node> {
        let zero = if element.is_float() {
            self.number(0.0)?
        } else {
            self.integer(0)?
        };
        self.builder.broadcast(zero, shape(dims)?)
    }
}

/// The columns of the k greatest or least of each row, ties by the lower column.
fn best_columns(emit: &mut Emit<'_>, rows: &Value, k: usize, is_greatest: bool) -> Result<Node> {
    let is_narrow = matches!(
        rows.element,
        ElementType::I8 | ElementType::U8 | ElementType::I16 | ElementType::U16 | ElementType::Bool
    );
    if !rows.element.is_float() && !is_narrow {
        return ranked_columns(emit, rows, k, is_greatest);
    }
    let mut node = emit.node(rows)?;
    if is_narrow {
        node = emit.builder.convert(node, DType::F32)?;
    }
    if !is_greatest {
        node = emit.builder.function(Function::Neg, node)?;
    }
    let [count, cols] = [rows.dims[0], rows.dims[1]];
    let starts: Vec<i32> = (0..count).map(|row| (row * cols) as i32).collect();
    let starts = emit.builder.integer_constant(&starts, [count, 1])?;
    let mut parts = Vec::new();
    // The best of those that no earlier round has taken.
    for first in (0..k).step_by(MAX_K) {
        let part = MAX_K.min(k - first);
        let columns = emit.builder.top_k(node, part)?;
        parts.push(columns);
        if first + part < k {
            let places = emit
                .builder
                .integer(IntegerOp::Add, columns, Some(starts))?;
            let places = emit.builder.reshape(places, [count * part])?;
            let lowest = emit.number(f32::NEG_INFINITY)?;
            let lowest = emit.builder.broadcast(lowest, [count * part, 1])?;
            let flat = emit.builder.reshape(node, [count * cols, 1])?;
            let flat = emit
                .builder
                .scatter(ScatterUpdate::Assign, flat, places, lowest)?;
            node = emit.builder.reshape(flat, [count, cols])?;
        }
    }
    if parts.len() == 1 {
        Ok(parts[0])
    } else {
        emit.builder.concat(&parts, 1)
    }
}

/// Columns in the order of their ranks: how many elements of the row come before each.
fn ranked_columns(emit: &mut Emit<'_>, rows: &Value, k: usize, is_greatest: bool) -> Result<Node> {
    let [count, cols] = [rows.dims[0], rows.dims[1]];
    if count.saturating_mul(cols).saturating_mul(cols) > MAX_PAIRS {
        return Err(Error::unsupported(format!(
            "the best of {count} rows of {cols} {}; at most {MAX_PAIRS} pairs are compared",
            rows.element
        )));
    }
    let node = emit.node(rows)?;
    let (own, others) = (
        emit.builder.reshape(node, [count, cols, 1])?,
        emit.builder.reshape(node, [count, 1, cols])?,
    );
    let is_better = emit.builder.compare(
        if is_greatest {
            Comparison::Less
        } else {
            Comparison::Greater
        },
        own,
        others,
    )?;
    let is_equal = emit.builder.compare(Comparison::Equal, own, others)?;
    let is_earlier: Vec<i32> = (0..cols * cols)
        .map(|place| i32::from(place % cols < place / cols))
        .collect();
    let is_earlier = emit.builder.integer_constant(&is_earlier, [cols, cols])?;
    let is_tie = emit
        .builder
        .integer(IntegerOp::And, is_equal, Some(is_earlier))?;
    let is_before = emit
        .builder
        .integer(IntegerOp::Or, is_better, Some(is_tie))?;
    let ranks = emit.builder.reduce_axes(Reduction::Sum, is_before, &[2])?;
    let ranks = emit.builder.reshape(ranks, [count, cols])?;
    // A rank of k or more is stored nowhere.
    let limit = emit.integer(k as i32)?;
    let is_kept = emit.builder.compare(Comparison::Less, ranks, limit)?;
    let starts: Vec<i32> = (0..count).map(|row| (row * k) as i32).collect();
    let starts = emit.builder.integer_constant(&starts, [count, 1])?;
    let places = emit.builder.integer(IntegerOp::Add, ranks, Some(starts))?;
    let nowhere = emit.integer(-1)?;
    let places = emit.builder.select(is_kept, places, nowhere)?;
    let places = emit.builder.reshape(places, [count * cols])?;
    let columns: Vec<i32> = (0..count * cols)
        .map(|place| (place % cols) as i32)
        .collect();
    let columns = emit.builder.integer_constant(&columns, [count * cols, 1])?;
    let table = emit.zeros(ElementType::I64, &[count * k, 1])?;
    let chosen = emit
        .builder
        .scatter(ScatterUpdate::Assign, table, places, columns)?;
    emit.builder.reshape(chosen, [count, k])
}

fn top_k(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axis = x.axis(call.attributes.int_or("axis", -1)?)?;
    let is_greatest = call.attributes.flag("largest", true)?;
    // Unsorted results may have any order, also the sorted one.
    call.attributes.flag("sorted", true)?;
    let k = match call.attributes.int("k")? {
        Some(k) => k,
        None => call
            .known(1, "k")?
            .to_i64()
            .first()
            .copied()
            .ok_or_else(|| Error::data("k has no elements"))?,
    };
    let size = x.dims[axis];
    let k = usize::try_from(k)
        .ok()
        .filter(|k| *k <= size)
        .ok_or_else(|| Error::data(format!("the best {k} of axis {axis} of {:?}", x.dims)))?;
    let mut dims = x.dims.clone();
    dims.remove(axis);
    dims.push(k);
    if dims.contains(&0) {
        let mut dims = x.dims.clone();
        dims[axis] = k;
        return Ok([x.element, ElementType::I64]
            .map(|element| Array::wide(element, &dims, Vec::new()).into())
            .to_vec());
    }
    let count = x.len() / size;
    let turned = emit.axis_last(x, axis)?;
    let rows = emit.reshape(&turned, &[count, size])?;
    let columns = best_columns(emit, &rows, k, is_greatest)?;
    let starts: Vec<i32> = (0..count).map(|row| (row * size) as i32).collect();
    let starts = emit.builder.integer_constant(&starts, [count, 1])?;
    let places = emit
        .builder
        .integer(IntegerOp::Add, columns, Some(starts))?;
    let table = emit.node(&rows)?;
    let (table, places) = (
        emit.builder.reshape(table, [count * size, 1])?,
        emit.builder.reshape(places, [count * k])?,
    );
    let values = emit.builder.gather(table, places)?;
    let values = emit.shaped(values, x.element, &dims)?;
    let columns = emit.shaped(columns, ElementType::I64, &dims)?;
    Ok(vec![
        emit.last_axis_to(&values, axis)?,
        emit.last_axis_to(&columns, axis)?,
    ])
}

/// The axis that an input gives.
fn axis_input(call: &Call<'_>, x: &Value) -> Result<usize> {
    let axis = call.known(1, "the axis")?.to_i64();
    x.axis(
        axis.first()
            .copied()
            .ok_or_else(|| Error::data("the axis has no elements"))?,
    )
}

fn cumsum(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axis = axis_input(call, x)?;
    let (exclusive, reverse) = (
        call.attributes.flag("exclusive", false)?,
        call.attributes.flag("reverse", false)?,
    );
    let turned = emit.axis_last(x, axis)?;
    let node = emit.node(&turned)?;
    let node = emit.builder.cumsum(node, exclusive, reverse)?;
    let node = emit.wrap(node, x.element)?;
    let value = emit.shaped(node, x.element, &turned.dims)?;
    Ok(vec![emit.last_axis_to(&value, axis)?])
}

/// Running products: each step multiplies by the products that end as many places before.
fn cumprod(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let axis = axis_input(call, x)?;
    let (exclusive, reverse) = (
        call.attributes.flag("exclusive", false)?,
        call.attributes.flag("reverse", false)?,
    );
    let size = x.dims[axis];
    let mut value = x.clone();
    if exclusive {
        value = shifted(emit, &value, axis, 1, reverse)?;
    }
    let mut distance = 1;
    while distance < size {
        let earlier = shifted(emit, &value, axis, distance, reverse)?;
        let (a, b) = (emit.node(&value)?, emit.node(&earlier)?);
        let node = if x.element.is_float() {
            emit.builder.mul(a, b)?
        } else {
            emit.builder.integer(IntegerOp::Mul, a, Some(b))?
        };
        let node = emit.wrap(node, x.element)?;
        value = emit.value(node, x.element)?;
        distance *= 2;
    }
    Ok(vec![value])
}

/// A value moved along an axis to its end, or to its start with `reverse`; ones come in.
fn shifted(
    emit: &mut Emit<'_>,
    value: &Value,
    axis: usize,
    distance: usize,
    reverse: bool,
) -> Result<Value> {
    let size = value.dims[axis];
    let mut dims = value.dims.clone();
    dims[axis] = distance.min(size);
    let one = if value.element.is_float() {
        emit.number(1.0)?
    } else {
        emit.integer(1)?
    };
    let ones = emit.builder.broadcast(one, shape(&dims)?)?;
    let ones = emit.shaped(ones, value.element, &dims)?;
    if distance >= size {
        return Ok(ones);
    }
    let kept: Vec<usize> = if reverse {
        (distance..size).collect()
    } else {
        (0..size - distance).collect()
    };
    let kept = emit.take(value, axis, &kept)?;
    let parts = if reverse { [kept, ones] } else { [ones, kept] };
    emit.join(&parts, axis)
}

fn update_of(call: &Call<'_>) -> Result<ScatterUpdate> {
    Ok(match call.attributes.string_or("reduction", "none")? {
        "none" => ScatterUpdate::Assign,
        "add" => ScatterUpdate::Add,
        "mul" => ScatterUpdate::Mul,
        "max" => ScatterUpdate::Max,
        "min" => ScatterUpdate::Min,
        other => return Err(Error::data(format!("reduction {other:?}"))),
    })
}

/// Stores rows of `cols` elements to a value.
fn store(
    emit: &mut Emit<'_>,
    x: &Value,
    places: Node,
    updates: &Value,
    [count, cols]: [usize; 2],
    how: ScatterUpdate,
) -> Result<Value> {
    if updates.element != x.element {
        return Err(Error::data(format!(
            "updates of {} for {}",
            updates.element, x.element
        )));
    }
    let (table, rows) = (emit.node(x)?, emit.node(updates)?);
    let table = emit.builder.reshape(table, [x.len() / cols, cols])?;
    let (places, rows) = (
        emit.builder.reshape(places, [count])?,
        emit.builder.reshape(rows, [count, cols])?,
    );
    let node = emit.builder.scatter(how, table, places, rows)?;
    let node = if how == ScatterUpdate::Assign {
        node
    } else {
        emit.wrap(node, x.element)?
    };
    emit.shaped(node, x.element, &x.dims)
}

fn scatter_elements(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let axis = x.axis(call.attributes.int_or("axis", 0)?)?;
    let how = update_of(call)?;
    if updates.dims != indices.dims {
        return Err(Error::data(format!(
            "updates {:?} for indices {:?}",
            updates.dims, indices.dims
        )));
    }
    if updates.len() == 0 {
        return Ok(vec![x.clone()]);
    }
    let places = element_places(emit, x, indices, axis)?;
    Ok(vec![store(
        emit,
        x,
        places,
        updates,
        [updates.len(), 1],
        how,
    )?])
}

fn scatter_nd(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (x, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let how = update_of(call)?;
    if updates.len() == 0 {
        return Ok(vec![x.clone()]);
    }
    let (places, count, cols) = row_places(emit, x, indices, 0)?;
    if updates.len() != count * cols {
        return Err(Error::data(format!(
            "updates {:?} for indices {:?} of {:?}",
            updates.dims, indices.dims, x.dims
        )));
    }
    Ok(vec![store(emit, x, places, updates, [count, cols], how)?])
}

/// Tokens stored to a cache from a place of each item on.
fn tensor_scatter(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (cache, update) = (call.input(0)?, call.input(1)?);
    let axis = cache.axis(call.attributes.int_or("axis", -2)?)?;
    let is_circular = match call.attributes.string_or("mode", "linear")? {
        "linear" => false,
        "circular" => true,
        other => return Err(Error::data(format!("mode {other:?}"))),
    };
    let fits = update.rank() == cache.rank()
        && (0..cache.rank()).all(|other| {
            if other == axis {
                update.dims[other] <= cache.dims[other]
            } else {
                update.dims[other] == cache.dims[other]
            }
        });
    if !fits || axis == 0 {
        return Err(Error::data(format!(
            "an update {:?} of axis {axis} of {:?}",
            update.dims, cache.dims
        )));
    }
    let (size, tokens, batch) = (cache.dims[axis], update.dims[axis], cache.dims[0]);
    let (middle, cols): (usize, usize) = (
        cache.dims[1..axis].iter().product(),
        cache.dims[axis + 1..].iter().product(),
    );
    let steps: Vec<i32> = (0..tokens as i32).collect();
    let steps = emit.builder.integer_constant(&steps, [1, 1, tokens])?;
    let starts = match call.optional(2) {
        Some(starts) if starts.dims == [batch] => emit.input(call, 2)?,
        Some(starts) => {
            return Err(Error::data(format!(
                "write indices {:?} for {batch} items",
                starts.dims
            )));
        }
        None => emit.zeros(ElementType::I64, &[batch])?,
    };
    let starts = emit.builder.reshape(starts, [batch, 1, 1])?;
    let mut tokens_at = emit.builder.integer(IntegerOp::Add, starts, Some(steps))?;
    if is_circular {
        let size = emit.integer(size as i32)?;
        tokens_at = emit
            .builder
            .integer(IntegerOp::Mod, tokens_at, Some(size))?;
    }
    let rows: Vec<i32> = (0..batch * middle).map(|row| (row * size) as i32).collect();
    let rows = emit.builder.integer_constant(&rows, [batch, middle, 1])?;
    let places = emit
        .builder
        .integer(IntegerOp::Add, rows, Some(tokens_at))?;
    Ok(vec![store(
        emit,
        cache,
        places,
        update,
        [batch * middle * tokens, cols],
        ScatterUpdate::Assign,
    )?])
}

fn center_crop_pad(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let targets = sizes(call.known(1, "the shape")?)?;
    let axes = call
        .attributes
        .ints("axes")?
        .unwrap_or_else(|| (0..x.rank() as i64).collect());
    if axes.len() != targets.len() {
        return Err(Error::data(format!(
            "{} sizes for {} axes",
            targets.len(),
            axes.len()
        )));
    }
    let mut value = x.clone();
    for (axis, target) in axes.into_iter().zip(targets) {
        let axis = normal_axis(axis, x.rank())?;
        let size = value.dims[axis];
        if target < size {
            let first = (size - target) / 2;
            let kept: Vec<usize> = (first..first + target).collect();
            value = emit.take(&value, axis, &kept)?;
        } else if target > size {
            let before = (target - size) / 2;
            let zeros = |count: usize| -> Value {
                let mut dims = value.dims.clone();
                dims[axis] = count;
                Array::wide(x.element, &dims, vec![0.0; dims.iter().product()]).into()
            };
            let parts = [zeros(before), value.clone(), zeros(target - size - before)];
            value = emit.join(&parts, axis)?;
        }
    }
    Ok(vec![value])
}

/// A number for each of `count` axes, from an attribute.
pub(super) fn for_axes(
    call: &Call<'_>,
    name: &'static str,
    count: usize,
    default: usize,
) -> Result<Vec<usize>> {
    let Some(given) = call.attributes.ints(name)? else {
        return Ok(vec![default; count]);
    };
    let numbers: Option<Vec<usize>> = given
        .iter()
        .map(|number| usize::try_from(*number).ok())
        .collect();
    numbers
        .filter(|numbers| numbers.len() == count)
        .ok_or_else(|| Error::data(format!("{name} {given:?} for {count} axes")))
}

/// The coordinates of a place in a row-major shape.
pub(super) fn coordinates(mut place: usize, dims: &[usize]) -> Vec<usize> {
    let mut at = vec![0; dims.len()];
    for (axis, size) in dims.iter().enumerate().rev() {
        at[axis] = place % size;
        place /= size;
    }
    at
}

/// Blocks added up to an image.
fn col_to_im(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (image, block) = (
        sizes(call.known(1, "the shape of the image")?)?,
        sizes(call.known(2, "the shape of a block")?)?,
    );
    let rank = image.len();
    let (strides, dilations, pads) = (
        for_axes(call, "strides", rank, 1)?,
        for_axes(call, "dilations", rank, 1)?,
        for_axes(call, "pads", 2 * rank, 0)?,
    );
    let fault = || {
        Error::data(format!(
            "{:?} as blocks {block:?} of an image {image:?}",
            x.dims
        ))
    };
    let &[items, wide, blocks] = &x.dims[..] else {
        return Err(fault());
    };
    if !x.element.is_float() {
        return Err(Error::unsupported(format!("blocks of {}", x.element)));
    }
    let block_len: usize = block.iter().product();
    let counts: Option<Vec<usize>> = (0..rank)
        .map(|axis| {
            let whole = image[axis] + pads[axis] + pads[rank + axis];
            let needed = dilations[axis] * block.get(axis)?.checked_sub(1)? + 1;
            whole
                .checked_sub(needed)?
                .checked_div(strides[axis])
                .map(|steps| steps + 1)
        })
        .collect();
    let counts = counts
        .filter(|counts| {
            block.len() == rank
                && block_len > 0
                && wide % block_len == 0
                && counts.iter().product::<usize>() == blocks
        })
        .ok_or_else(fault)?;
    let channels = wide / block_len;
    let place = |inside: usize, number: usize| {
        let (inside, number) = (coordinates(inside, &block), coordinates(number, &counts));
        let at = (0..rank).map(|axis| {
            (number[axis] * strides[axis] + inside[axis] * dilations[axis])
                .checked_sub(pads[axis])
                .filter(|at| *at < image[axis])
        });
        at.zip(&image)
            .try_fold(0, |place, (at, size)| at.map(|at| place * size + at))
            .map_or(-1, |place| place as i32)
    };
    let places: Vec<i32> = (0..block_len * blocks)
        .map(|at| place(at / blocks, at % blocks))
        .collect();
    let pixels: usize = image.iter().product();
    let rows = emit.reshape(x, &[items * channels, block_len * blocks])?;
    let rows = emit.permute(&rows, &[1, 0])?;
    let node = emit.node(&rows)?;
    let places = emit
        .builder
        .integer_constant(&places, [block_len * blocks])?;
    let node = emit
        .builder
        .segment_sum(node, places, [pixels, items * channels])?;
    let node = emit.builder.permute(node, &[1, 0])?;
    Ok(vec![emit.shaped(
        node,
        x.element,
        &[&[items, channels], &image[..]].concat(),
    )?])
}

/// A box as its lesser and greater corner.
type Corners = [f64; 4];

fn overlap(a: Corners, b: Corners) -> f64 {
    let area = |[y0, x0, y1, x1]: Corners| (y1 - y0) * (x1 - x0);
    let shared =
        (a[2].min(b[2]) - a[0].max(b[0])).max(0.0) * (a[3].min(b[3]) - a[1].max(b[1])).max(0.0);
    let whole = area(a) + area(b) - shared;
    if whole > 0.0 { shared / whole } else { 0.0 }
}

fn non_max_suppression(_: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let (boxes, scores) = (
        call.known(0, "boxes that decide the shape of the result")?,
        call.known(1, "scores that decide the shape of the result")?,
    );
    let number = |index: usize, what: &str| -> Result<Option<f64>> {
        Ok(call
            .optional_known(index, what)?
            .and_then(|array| array.to_f64().first().copied()))
    };
    let limit = number(2, "the number of boxes of a class")?.unwrap_or(0.0) as usize;
    let (max_overlap, min_score) = (
        number(3, "the overlap")?.unwrap_or(0.0),
        number(4, "the score")?.unwrap_or(f64::NEG_INFINITY),
    );
    let is_centred = call.attributes.flag("center_point_box", false)?;
    let (&[items, count, 4], &[score_items, classes, score_count]) = (boxes.dims(), scores.dims())
    else {
        return Err(Error::data(format!(
            "boxes {:?}, scores {:?}",
            boxes.dims(),
            scores.dims()
        )));
    };
    if (items, count) != (score_items, score_count) {
        return Err(Error::data(format!(
            "boxes {:?}, scores {:?}",
            boxes.dims(),
            scores.dims()
        )));
    }
    let (boxes, scores) = (boxes.to_f64(), scores.to_f64());
    let corners = |item: usize, index: usize| -> Corners {
        let at = (item * count + index) * 4;
        let [a, b, c, d] = [boxes[at], boxes[at + 1], boxes[at + 2], boxes[at + 3]];
        if is_centred {
            [b - d / 2.0, a - c / 2.0, b + d / 2.0, a + c / 2.0]
        } else {
            [a.min(c), b.min(d), a.max(c), b.max(d)]
        }
    };
    let mut selected = Vec::new();
    for (item, class) in (0..items).flat_map(|item| (0..classes).map(move |class| (item, class))) {
        let scores = &scores[(item * classes + class) * count..][..count];
        let mut order: Vec<usize> = (0..count)
            .filter(|index| scores[*index] > min_score)
            .collect();
        order.sort_by(|a, b| {
            scores[*b]
                .partial_cmp(&scores[*a])
                .unwrap_or(Ordering::Equal)
        });
        let mut kept: Vec<usize> = Vec::new();
        for index in order {
            if kept.len() >= limit {
                break;
            }
            if kept
                .iter()
                .all(|other| overlap(corners(item, *other), corners(item, index)) <= max_overlap)
            {
                kept.push(index);
            }
        }
        selected.extend(
            kept.into_iter()
                .flat_map(|index| [item as f64, class as f64, index as f64]),
        );
    }
    Ok(vec![
        Array::wide(ElementType::I64, &[selected.len() / 3, 3], selected).into(),
    ])
}

/// The different parts of a known tensor.
fn unique(_: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.known(0, "which decides the shape of the result")?;
    let axis = call.attributes.int("axis")?;
    let is_sorted = call.attributes.flag("sorted", true)?;
    let (dims, axis) = match axis {
        Some(axis) => (x.dims().to_vec(), normal_axis(axis, x.dims().len())?),
        None => (vec![x.len()], 0),
    };
    let data = x.to_f64();
    let (outer, size, inner): (usize, usize, usize) = (
        dims[..axis].iter().product(),
        dims[axis],
        dims[axis + 1..].iter().product(),
    );
    let part = |index: usize| -> Vec<f64> {
        (0..outer)
            .flat_map(|outer| {
                data[(outer * size + index) * inner..][..inner]
                    .iter()
                    .copied()
            })
            .collect()
    };
    let parts: Vec<Vec<f64>> = (0..size).map(part).collect();
    let order = |a: &[f64], b: &[f64]| {
        a.iter()
            .zip(b)
            .map(|(a, b)| {
                a.partial_cmp(b)
                    .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            })
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    };
    // Equal parts are neighbours, the first of them in front.
    let mut sorted: Vec<usize> = (0..size).collect();
    sorted.sort_by(|a, b| order(&parts[*a], &parts[*b]));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for index in sorted {
        match groups.last_mut() {
            Some(group) if order(&parts[group[0]], &parts[index]).is_eq() => group.push(index),
            _ => groups.push(vec![index]),
        }
    }
    if !is_sorted {
        groups.sort_by_key(|group| group[0]);
    }
    let mut inverse = vec![0.0; size];
    for (number, group) in groups.iter().enumerate() {
        group
            .iter()
            .for_each(|index| inverse[*index] = number as f64);
    }
    let mut kept = dims.clone();
    kept[axis] = groups.len();
    let taken = (0..outer).flat_map(|outer| {
        groups.iter().flat_map(move |group| {
            (0..inner).map(move |place| (outer * size + group[0]) * inner + place)
        })
    });
    let values = taken.map(|place| data[place]).collect();
    let integers = |values: Vec<f64>| -> Value {
        Array::wide(ElementType::I64, &[values.len()], values).into()
    };
    Ok(vec![
        Array::wide(x.element(), &kept, values).into(),
        integers(groups.iter().map(|group| group[0] as f64).collect()),
        integers(inverse),
        integers(groups.iter().map(|group| group.len() as f64).collect()),
    ])
}

//! Resampling to other sizes.
//!
//! Every axis is resampled on its own: each output place is a sum of few weighted input places, all
//! known when the model is loaded.

use tectum::{Error, Result};
use tectum_graph::Node;

use super::Family;
use super::constants::convert;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value, normal_axis, shape};

pub(super) const FAMILY: Family = &[("Resize", resize), ("Upsample", upsample)];

/// Weighted places of an input axis.
type Taps = Vec<(usize, f64)>;

/// Terms of a sum that are taken one by one; a longer sum is a product with a matrix.
const MAX_TAKEN: usize = 4;

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Nearest,
    Linear,
    Cubic,
}

impl Mode {
    fn named(name: &str) -> Result<Self> {
        match name {
            "nearest" => Ok(Self::Nearest),
            "linear" | "bilinear" => Ok(Self::Linear),
            "cubic" => Ok(Self::Cubic),
            other => Err(Error::data(format!("mode {other:?}"))),
        }
    }

    /// The weight at a distance from the centre, and how far it reaches.
    fn weight(self, distance: f64, a: f64) -> f64 {
        let t = distance.abs();
        match self {
            Self::Nearest => 0.0,
            Self::Linear => (1.0 - t).max(0.0),
            Self::Cubic if t <= 1.0 => ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0,
            Self::Cubic if t < 2.0 => ((a * t - 5.0 * a) * t + 8.0 * a) * t - 4.0 * a,
            Self::Cubic => 0.0,
        }
    }

    fn reach(self) -> f64 {
        if self == Self::Cubic { 2.0 } else { 1.0 }
    }
}

/// The settings of all axes.
struct Sampling<'a> {
    mode: Mode,
    coordinates: &'a str,
    rounding: &'a str,
    cubic: f64,
    excludes_outside: bool,
    has_antialias: bool,
}

/// How an axis changes.
#[derive(Clone, Copy)]
struct AxisScale {
    from: usize,
    to: usize,
    /// The output size before it was rounded.
    exact: f64,
    roi: [f64; 2],
}

impl AxisScale {
    fn is_identity(&self) -> bool {
        self.from == self.to && self.exact == self.from as f64 && self.roi == [0.0, 1.0]
    }
}

impl Sampling<'_> {
    /// Where an output place is in the input.
    fn coordinate(&self, axis: &AxisScale, place: usize) -> Result<f64> {
        let (x, from, to) = (place as f64, axis.from as f64, axis.to as f64);
        let unscaled = |x: f64| x * from / axis.exact;
        Ok(match self.coordinates {
            "half_pixel" => unscaled(x + 0.5) - 0.5,
            "half_pixel_symmetric" => {
                from / 2.0 * (1.0 - to / axis.exact) + unscaled(x + 0.5) - 0.5
            }
            "pytorch_half_pixel" if axis.to > 1 => unscaled(x + 0.5) - 0.5,
            "pytorch_half_pixel" => 0.0,
            "align_corners" if axis.exact == 1.0 => 0.0,
            "align_corners" => x * (from - 1.0) / (axis.exact - 1.0),
            "asymmetric" => unscaled(x),
            "tf_half_pixel_for_nn" => unscaled(x + 0.5),
            "tf_crop_and_resize" if axis.to > 1 => {
                axis.roi[0] * (from - 1.0)
                    + x * (axis.roi[1] - axis.roi[0]) * (from - 1.0) / (to - 1.0)
            }
            "tf_crop_and_resize" => 0.5 * (axis.roi[0] + axis.roi[1]) * (from - 1.0),
            other => {
                return Err(Error::data(format!(
                    "coordinate_transformation_mode {other:?}"
                )));
            }
        })
    }

    /// The inputs of an output place.
    fn taps(&self, axis: &AxisScale, x: f64) -> Result<Taps> {
        let last = axis.from as f64 - 1.0;
        if self.mode == Mode::Nearest {
            let place = match self.rounding {
                "round_prefer_floor" => (x - 0.5).ceil(),
                "round_prefer_ceil" => (x + 0.5).floor(),
                "floor" => x.floor(),
                "ceil" => x.ceil(),
                other => return Err(Error::data(format!("nearest_mode {other:?}"))),
            };
            return Ok(vec![(place.clamp(0.0, last) as usize, 1.0)]);
        }
        let stretch = if self.has_antialias {
            (axis.exact / axis.from as f64).min(1.0)
        } else {
            1.0
        };
        let reach = self.mode.reach() / stretch;
        let (first, end) = ((x - reach).floor(), (x + reach).ceil());
        let mut taps = Taps::new();
        for step in 0..=(end - first) as usize {
            let at = first + step as f64;
            let weight = self.mode.weight((at - x) * stretch, self.cubic);
            if weight == 0.0 || (self.excludes_outside && !(0.0..=last).contains(&at)) {
                continue;
            }
            let place = at.clamp(0.0, last) as usize;
            match taps.last_mut() {
                Some((known, sum)) if *known == place => *sum += weight,
                _ => taps.push((place, weight)),
            }
        }
        let total: f64 = taps.iter().map(|(_, weight)| weight).sum();
        if taps.is_empty() {
            return Ok(vec![(x.clamp(0.0, last) as usize, 1.0)]);
        }
        if self.excludes_outside || self.has_antialias {
            taps.iter_mut().for_each(|(_, weight)| *weight /= total);
        }
        Ok(taps)
    }
}

/// A value whose axis is resampled.
fn resample(emit: &mut Emit<'_>, value: &Value, axis: usize, taps: &[Taps]) -> Result<Value> {
    let most = taps.iter().map(Vec::len).max().unwrap_or(0);
    let term = |index: usize| -> Vec<(usize, f64)> {
        taps.iter()
            .map(|taps| taps.get(index).copied().unwrap_or((taps[0].0, 0.0)))
            .collect()
    };
    if most == 1 && taps.iter().all(|taps| taps[0].1 == 1.0) {
        let places: Vec<usize> = taps.iter().map(|taps| taps[0].0).collect();
        return emit.take(value, axis, &places);
    }
    if most > MAX_TAKEN {
        return by_matrix(emit, value, axis, taps);
    }
    let mut along = vec![1; value.rank()];
    along[axis] = taps.len();
    let mut sum: Option<Node> = None;
    for index in 0..most {
        let (places, weights): (Vec<usize>, Vec<f64>) = term(index).into_iter().unzip();
        let taken = emit.take(value, axis, &places)?;
        let weights: Value = Array::wide(ElementType::F32, &along, weights).into();
        let (taken, weights) = (emit.node(&taken)?, emit.node(&weights)?);
        let product = emit.builder.mul(taken, weights)?;
        sum = Some(match sum {
            Some(sum) => emit.builder.add(sum, product)?,
            None => product,
        });
    }
    emit.value(
        sum.ok_or_else(|| Error::data("an axis of size 0"))?,
        value.element,
    )
}

fn by_matrix(emit: &mut Emit<'_>, value: &Value, axis: usize, taps: &[Taps]) -> Result<Value> {
    let (from, to) = (value.dims[axis], taps.len());
    let mut matrix = vec![0.0; from * to];
    for (column, taps) in taps.iter().enumerate() {
        taps.iter()
            .for_each(|(row, weight)| matrix[row * to + column] += weight);
    }
    let matrix = Array::wide(ElementType::F32, &[from, to], matrix).into();
    let turned = emit.axis_last(value, axis)?;
    let product = super::matrix::product(emit, &turned, &matrix)?;
    emit.last_axis_to(&product, axis)
}

/// Rounds halves up.
fn nearest(value: f64) -> f64 {
    (value + 0.5).floor()
}

/// The sizes of the axes that are named, from scales or sizes.
fn axis_scales(
    call: &Call<'_>,
    x: &Value,
    axes: &[usize],
    scales: Option<&Array>,
    sizes: Option<&Array>,
    rois: &[[f64; 2]],
) -> Result<Vec<AxisScale>> {
    let fault =
        |what: &str, count: usize| Error::data(format!("{count} {what} for {} axes", axes.len()));
    let policy = call
        .attributes
        .string_or("keep_aspect_ratio_policy", "stretch")?;
    let pairs: Vec<(usize, f64)> = match (
        scales.filter(|scales| !scales.is_empty()),
        sizes.filter(|sizes| !sizes.is_empty()),
    ) {
        (Some(scales), _) => {
            let scales = scales.to_f32();
            if scales.len() != axes.len()
                || scales
                    .iter()
                    .any(|scale| !scale.is_finite() || *scale <= 0.0)
            {
                return Err(fault("scales above 0", scales.len()));
            }
            let size = |(place, scale): (usize, f32)| {
                let [start, end] = rois[place];
                let whole = x.dims[axes[place]] as f64;
                // In f32, where a product such as 10 · 0.7 is whole.
                (
                    ((whole * (end - start)) as f32 * scale).floor() as usize,
                    whole * f64::from(scale),
                )
            };
            scales.into_iter().enumerate().map(size).collect()
        }
        (None, Some(sizes)) => {
            let sizes = super::constants::sizes(sizes)?;
            if sizes.len() != axes.len() {
                return Err(fault("sizes", sizes.len()));
            }
            let ratios = sizes
                .iter()
                .zip(axes)
                .map(|(size, axis)| *size as f64 / x.dims[*axis] as f64);
            let ratio = match policy {
                "stretch" => None,
                "not_larger" => Some(ratios.fold(f64::INFINITY, f64::min)),
                "not_smaller" => Some(ratios.fold(0.0, f64::max)),
                other => return Err(Error::data(format!("keep_aspect_ratio_policy {other:?}"))),
            };
            let size = |(size, axis): (&usize, &usize)| match ratio {
                Some(ratio) => (
                    nearest(ratio * x.dims[*axis] as f64) as usize,
                    ratio * x.dims[*axis] as f64,
                ),
                None => (*size, *size as f64),
            };
            sizes.iter().zip(axes).map(size).collect()
        }
        (None, None) => return Err(Error::data("neither scales nor sizes are given")),
    };
    let scale = |(place, (to, exact)): (usize, (usize, f64))| AxisScale {
        from: x.dims[axes[place]],
        to,
        exact,
        roi: rois[place],
    };
    let scales: Vec<AxisScale> = pairs.into_iter().enumerate().map(scale).collect();
    let len = scales
        .iter()
        .try_fold(1usize, |len, axis| len.checked_mul(axis.to))
        .filter(|len| (1..=u32::MAX as usize).contains(len));
    if len.is_none() || x.len() == 0 {
        return Err(Error::data(format!(
            "{:?} resized to {:?}",
            x.dims,
            scales.iter().map(|axis| axis.to).collect::<Vec<_>>()
        )));
    }
    Ok(scales)
}

fn resize(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let is_old = call.opset < 11;
    let attributes = &call.attributes;
    let sampling = Sampling {
        mode: Mode::named(attributes.string_or("mode", "nearest")?)?,
        coordinates: attributes.string_or(
            "coordinate_transformation_mode",
            if is_old { "asymmetric" } else { "half_pixel" },
        )?,
        rounding: attributes.string_or(
            "nearest_mode",
            if is_old {
                "floor"
            } else {
                "round_prefer_floor"
            },
        )?,
        cubic: attributes.float_or("cubic_coeff_a", -0.75)?.into(),
        excludes_outside: attributes.flag("exclude_outside", false)?,
        has_antialias: attributes.flag("antialias", false)?,
    };
    let extrapolated = attributes.float_or("extrapolation_value", 0.0)?;
    let axes = match attributes.ints("axes")? {
        Some(axes) => axes
            .into_iter()
            .map(|axis| normal_axis(axis, x.rank()))
            .collect::<Result<Vec<_>>>()?,
        None => (0..x.rank()).collect(),
    };
    let is_cropped = sampling.coordinates == "tf_crop_and_resize";
    let roi = if is_cropped {
        call.optional_known(1, "the region")?.map(Array::to_f64)
    } else {
        None
    };
    let rois: Vec<[f64; 2]> = match roi {
        Some(roi) if roi.len() == 2 * axes.len() => (0..axes.len())
            .map(|place| [roi[place], roi[axes.len() + place]])
            .collect(),
        Some(roi) => {
            return Err(Error::data(format!(
                "a region of {} numbers for {} axes",
                roi.len(),
                axes.len()
            )));
        }
        None => vec![[0.0, 1.0]; axes.len()],
    };
    let (scales_at, sizes_at) = if is_old { (1, 3) } else { (2, 3) };
    let (scales, sizes) = (
        call.optional_known(scales_at, "the scales")?,
        call.optional_known(sizes_at, "the sizes")?,
    );
    let scales = axis_scales(call, x, &axes, scales, sizes, &rois)?;
    let y = resized(
        emit,
        x,
        &sampling,
        &axes,
        &scales,
        is_cropped.then_some(extrapolated),
    )?;
    Ok(vec![y])
}

/// Resamples the axes one after another.
fn resized(
    emit: &mut Emit<'_>,
    x: &Value,
    sampling: &Sampling<'_>,
    axes: &[usize],
    scales: &[AxisScale],
    extrapolated: Option<f32>,
) -> Result<Value> {
    let is_computed = sampling.mode != Mode::Nearest || extrapolated.is_some();
    let mut value = if is_computed {
        convert(emit, x, ElementType::F32)?
    } else {
        x.clone()
    };
    let mut masks = Vec::new();
    for (axis, scale) in axes
        .iter()
        .copied()
        .zip(scales)
        .filter(|(_, scale)| !scale.is_identity())
    {
        let coordinates = (0..scale.to)
            .map(|place| sampling.coordinate(scale, place))
            .collect::<Result<Vec<_>>>()?;
        let taps = coordinates
            .iter()
            .map(|x| sampling.taps(scale, *x))
            .collect::<Result<Vec<_>>>()?;
        value = resample(emit, &value, axis, &taps)?;
        let is_inside: Vec<i32> = coordinates
            .iter()
            .map(|x| i32::from((0.0..=scale.from as f64 - 1.0).contains(x)))
            .collect();
        if is_inside.contains(&0) {
            masks.push((axis, is_inside));
        }
    }
    if let Some(extrapolated) = extrapolated {
        for (axis, is_inside) in masks {
            let mut along = vec![1; value.rank()];
            along[axis] = is_inside.len();
            let mask = emit.builder.integer_constant(&is_inside, shape(&along)?)?;
            let (node, outside) = (emit.node(&value)?, emit.number(extrapolated)?);
            let node = emit.builder.select(mask, node, outside)?;
            value = emit.value(node, ElementType::F32)?;
        }
    }
    if is_computed {
        convert(emit, &value, x.element)
    } else {
        Ok(value)
    }
}

fn upsample(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let mode = Mode::named(call.attributes.string_or("mode", "nearest")?)?;
    let scales = match call.attributes.floats("scales")? {
        Some(scales) => Array::floats(&[scales.len()], scales)?,
        None => call.known(1, "the scales")?.clone(),
    };
    let sampling = Sampling {
        mode,
        coordinates: "asymmetric",
        rounding: "floor",
        cubic: -0.75,
        excludes_outside: false,
        has_antialias: false,
    };
    let axes: Vec<usize> = (0..x.rank()).collect();
    let scales = axis_scales(
        call,
        x,
        &axes,
        Some(&scales),
        None,
        &vec![[0.0, 1.0]; x.rank()],
    )?;
    Ok(vec![resized(emit, x, &sampling, &axes, &scales, None)?])
}

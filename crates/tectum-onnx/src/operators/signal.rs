//! Fourier transforms as products with known matrices, windows, and mel filters.

use std::f64::consts::TAU;

use tectum::{Error, Result};

use super::Family;
use super::constants::element_of;
use super::matrix::product;
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value, normal_axis};

pub(super) const FAMILY: Family = &[
    ("BlackmanWindow", |_, call| window(call, [0.42, 0.5, 0.08])),
    ("DFT", fourier),
    ("HammingWindow", |_, call| {
        window(call, [25.0 / 46.0, 21.0 / 46.0, 0.0])
    }),
    ("HannWindow", |_, call| window(call, [0.5, 0.5, 0.0])),
    ("MelWeightMatrix", mel_weights),
    ("STFT", short_time_fourier),
];

/// Elements of a matrix or a window that a file may ask for.
const MAX_ELEMENTS: usize = 1 << 26;

/// A number that is known when the model is loaded.
fn number(call: &Call<'_>, index: usize, what: &str) -> Result<Option<f64>> {
    match call.optional_known(index, what)? {
        Some(array) => array
            .to_f64()
            .first()
            .copied()
            .map(Some)
            .ok_or_else(|| Error::data(format!("{what} has no elements"))),
        None => Ok(None),
    }
}

fn needed(call: &Call<'_>, index: usize, what: &str) -> Result<f64> {
    number(call, index, what)?
        .ok_or_else(|| Error::data(format!("input {index}, {what}, is missing")))
}

fn count(value: f64, what: &str) -> Result<usize> {
    if value >= 1.0 && value <= MAX_ELEMENTS as f64 {
        Ok(value as usize)
    } else {
        Err(Error::data(format!(
            "{what} {value}; 1 to {MAX_ELEMENTS} are possible"
        )))
    }
}

/// a − b·cos(2πn/N) + c·cos(4πn/N)
fn window(call: &Call<'_>, [a, b, c]: [f64; 3]) -> Result<Vec<Value>> {
    let size = count(needed(call, 0, "the size")?, "a size of")?;
    let element = element_of(call.attributes.int_or("output_datatype", 1)?)?;
    let period = if call.attributes.flag("periodic", true)? {
        size
    } else {
        (size - 1).max(1)
    };
    let weight = |n: usize| {
        let angle = TAU * n as f64 / period as f64;
        a - b * angle.cos() + c * (2.0 * angle).cos()
    };
    Ok(vec![
        Array::wide(element, &[size], (0..size).map(weight).collect()).into(),
    ])
}

/// What a transform reads and gives.
#[derive(Clone, Copy)]
struct Transform {
    /// Samples that are read; the others of `len` are zero.
    given: usize,
    /// Numbers of a sample: 1 if it is real, 2 if it is complex.
    parts: usize,
    len: usize,
    is_inverse: bool,
    is_onesided: bool,
}

impl Transform {
    /// Results, and the numbers of each.
    fn results(&self) -> [usize; 2] {
        match (self.is_onesided, self.is_inverse) {
            (true, false) => [self.len / 2 + 1, 2],
            (true, true) => [self.len, 1],
            (false, _) => [self.len, 2],
        }
    }

    /// [given · parts, results · parts], each sample multiplied by a factor.
    fn matrix(&self, factors: Option<&[f64]>) -> Result<Value> {
        let [results, result_parts] = self.results();
        let (rows, cols) = (self.given * self.parts, results * result_parts);
        if rows.saturating_mul(cols) > MAX_ELEMENTS {
            return Err(Error::unsupported(format!(
                "a Fourier transform as a matrix {rows}×{cols}"
            )));
        }
        let mut matrix = Vec::with_capacity(rows * cols);
        for (sample, part) in
            (0..self.given).flat_map(|sample| (0..self.parts).map(move |part| (sample, part)))
        {
            let factor = factors.map_or(1.0, |factors| factors[sample]) * self.share(sample);
            for (result, result_part) in
                (0..results).flat_map(|result| (0..result_parts).map(move |part| (result, part)))
            {
                let turns = (sample * result % self.len) as f64 / self.len as f64;
                let angle = if self.is_inverse {
                    TAU * turns
                } else {
                    -TAU * turns
                };
                let (sine, cosine) = angle.sin_cos();
                // (real + i·imaginary) · (cosine + i·sine)
                let weight = match (part, result_part) {
                    (0, 0) | (1, 1) => cosine,
                    (1, 0) => -sine,
                    _ => sine,
                };
                matrix.push(factor * weight);
            }
        }
        Ok(Array::wide(ElementType::F32, &[rows, cols], matrix).into())
    }

    /// What a sample of a spectrum counts: a one-sided spectrum has only one of two conjugate
    /// samples.
    fn share(&self, sample: usize) -> f64 {
        let whole = if self.is_inverse {
            1.0 / self.len as f64
        } else {
            1.0
        };
        let is_single = sample == 0 || 2 * sample == self.len;
        if self.is_onesided && self.is_inverse && !is_single {
            2.0 * whole
        } else {
            whole
        }
    }
}

fn fourier(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let (is_inverse, is_onesided) = (
        call.attributes.flag("inverse", false)?,
        call.attributes.flag("onesided", false)?,
    );
    let axis = match (call.attributes.int("axis")?, number(call, 2, "the axis")?) {
        (Some(axis), _) => axis,
        (None, Some(axis)) => axis as i64,
        (None, None) if call.opset < 20 => 1,
        (None, None) => -2,
    };
    let axis = normal_axis(axis, x.rank())?;
    let parts = x.dims.last().copied().unwrap_or(0);
    if axis + 1 == x.rank() || !matches!(parts, 1 | 2) || x.len() == 0 {
        return Err(Error::data(format!(
            "a Fourier transform of axis {axis} of {:?}",
            x.dims
        )));
    }
    let size = x.dims[axis];
    let default = if is_onesided && is_inverse {
        2.0 * (size as f64 - 1.0)
    } else {
        size as f64
    };
    let len = count(
        number(call, 1, "the length")?.unwrap_or(default),
        "a length of",
    )?;
    // Of a one-sided spectrum only one half is read.
    let read = if is_onesided && is_inverse {
        len / 2 + 1
    } else {
        len
    };
    let transform = Transform {
        given: size.min(read),
        parts,
        len,
        is_inverse,
        is_onesided,
    };
    let kept: Vec<usize> = (0..transform.given).collect();
    let x = if transform.given < size {
        emit.take(x, axis, &kept)?
    } else {
        x.clone()
    };
    // The axis and the parts are the last two.
    let last = x.rank() - 1;
    let order: Vec<usize> = (0..last)
        .filter(|other| *other != axis)
        .chain([axis, last])
        .collect();
    let turned = emit.permute(&x, &order)?;
    let outer = x.len() / transform.given / parts;
    let rows = emit.reshape(&turned, &[outer, transform.given * parts])?;
    let matrix = transform.matrix(None)?;
    let y = product(emit, &rows, &matrix)?;
    let [results, result_parts] = transform.results();
    let mut dims: Vec<usize> = (0..last)
        .filter(|other| *other != axis)
        .map(|other| x.dims[other])
        .collect();
    dims.extend([results, result_parts]);
    let y = emit.reshape(&y, &dims)?;
    let back: Vec<usize> = (0..axis)
        .chain([last - 1])
        .chain(axis..last - 1)
        .chain([last])
        .collect();
    Ok(vec![emit.permute(&y, &back)?])
}

fn short_time_fourier(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let x = call.input(0)?;
    let is_onesided = call.attributes.flag("onesided", true)?;
    let (batch, size, parts) = match x.dims[..] {
        [batch, size] => (batch, size, 1),
        [batch, size, parts @ (1 | 2)] => (batch, size, parts),
        _ => return Err(Error::data(format!("a signal {:?}", x.dims))),
    };
    let step = count(needed(call, 1, "the step between frames")?, "a step of")?;
    let window = call.optional(2);
    let default = window.map_or(size, Value::len);
    let len = count(
        number(call, 3, "the length of a frame")?.unwrap_or(default as f64),
        "frames of",
    )?;
    if len > size || window.is_some_and(|window| window.len() != len) {
        return Err(Error::data(format!(
            "frames of {len} of a signal {:?}",
            x.dims
        )));
    }
    let frames = (size - len) / step + 1;
    let places: Vec<usize> = (0..frames)
        .flat_map(|frame| frame * step..frame * step + len)
        .collect();
    let signal = emit.reshape(x, &[batch, size, parts])?;
    let taken = emit.take(&signal, 1, &places)?;
    let mut rows = emit.reshape(&taken, &[batch * frames, len, parts])?;
    let factors = window.and_then(Value::array).map(Array::to_f64);
    if let (Some(window), None) = (window, &factors) {
        let window = emit.reshape(window, &[len, 1])?;
        let (frame, window) = (emit.node(&rows)?, emit.node(&window)?);
        let node = emit.builder.mul(frame, window)?;
        rows = emit.value(node, x.element)?;
    }
    let rows = emit.reshape(&rows, &[batch * frames, len * parts])?;
    let transform = Transform {
        given: len,
        parts,
        len,
        is_inverse: false,
        is_onesided,
    };
    let matrix = transform.matrix(factors.as_deref())?;
    let y = product(emit, &rows, &matrix)?;
    let [results, result_parts] = transform.results();
    Ok(vec![
        emit.reshape(&y, &[batch, frames, results, result_parts])?,
    ])
}

/// Triangles on the mel scale, as ONNX places them: their corners are rounded down to bins.
fn mel_weights(_: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let bands = count(needed(call, 0, "the number of bands")?, "bands")?;
    let len = count(
        needed(call, 1, "the length of the transform")?,
        "a length of",
    )?;
    let (rate, low, high) = (
        needed(call, 2, "the sample rate")?,
        needed(call, 3, "the lower edge")?,
        needed(call, 4, "the upper edge")?,
    );
    let element = element_of(call.attributes.int_or("output_datatype", 1)?)?;
    let bins = len / 2 + 1;
    if bins.saturating_mul(bands) > MAX_ELEMENTS || rate <= 0.0 {
        return Err(Error::data(format!(
            "{bands} bands of {bins} bins at a rate of {rate}"
        )));
    }
    let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
    let step = (mel(high) - mel(low)) / (bands + 2) as f64;
    let corner = |index: usize| {
        let hertz = 700.0 * (10f64.powf((mel(low) + step * index as f64) / 2595.0) - 1.0);
        (((len + 1) as f64 * hertz / rate).floor().max(0.0)) as usize
    };
    let mut matrix = vec![0.0; bins * bands];
    for band in 0..bands {
        let [first, top, end] = [corner(band), corner(band + 1), corner(band + 2)];
        for bin in first..end.max(top + 1).min(bins) {
            matrix[bin * bands + band] = match (bin as f64, first as f64, top as f64, end as f64) {
                _ if bin == top => 1.0,
                (bin, first, top, _) if bin < top => (bin - first) / (top - first),
                (bin, _, top, end) => (end - bin) / (end - top),
            };
        }
    }
    Ok(vec![Array::wide(element, &[bins, bands], matrix).into()])
}

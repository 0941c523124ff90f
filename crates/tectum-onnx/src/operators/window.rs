//! Windows of convolutions and pooling, as attributes state them.

use tectum::{Error, Result, Window};

use crate::emit::{Call, Value};

/// The axes of space of a value [N, C, ..].
pub(super) fn space(x: &Value) -> Result<&[usize]> {
    match x.rank() {
        3..=5 => Ok(&x.dims[2..]),
        _ => Err(Error::unsupported(format!("{:?}: [N, C, ..] with one to three axes of space are needed", x.dims))),
    }
}

pub(super) fn sizes(call: &Call<'_>, name: &'static str, axes: usize, default: usize) -> Result<Vec<usize>> {
    let Some(given) = call.attributes.ints(name)? else { return Ok(vec![default; axes]) };
    let sizes = given.iter().map(|size| usize::try_from(*size).ok()).collect::<Option<Vec<_>>>();
    sizes.filter(|sizes| sizes.len() == axes).ok_or_else(|| Error::data(format!("{name} {given:?} for {axes} axes of space")))
}

/// Three sizes, of which the last are given.
pub(super) fn padded(sizes: &[usize], rest: usize) -> [usize; 3] {
    let mut three = [rest; 3];
    three[3 - sizes.len()..].copy_from_slice(sizes);
    three
}

/// Window, and the padding after the input that was asked for, which is less than the window's in the ceiling mode.
pub(super) fn window(call: &Call<'_>, size_in: &[usize], kernel: &[usize]) -> Result<(Window, [usize; 3])> {
    let axes = size_in.len();
    let (stride, dilation) = (sizes(call, "strides", axes, 1)?, sizes(call, "dilations", axes, 1)?);
    let mut pads = sizes(call, "pads", 2 * axes, 0)?;
    let rounds_up = call.attributes.flag("ceil_mode", false)?;
    let mode = call.attributes.string_or("auto_pad", "NOTSET")?;
    if kernel.len() != axes || stride.contains(&0) || dilation.contains(&0) || kernel.contains(&0) {
        return Err(Error::data(format!("kernel {kernel:?}, strides {stride:?}, dilations {dilation:?} for {axes} axes of space")));
    }
    let extent = |axis: usize| (kernel[axis] - 1).saturating_mul(dilation[axis]).saturating_add(1);
    match mode {
        "NOTSET" => (),
        "VALID" => pads = vec![0; 2 * axes],
        "SAME_UPPER" | "SAME_LOWER" => {
            for axis in 0..axes {
                let out = size_in[axis].div_ceil(stride[axis]);
                let needed = (out.saturating_sub(1).saturating_mul(stride[axis]).saturating_add(extent(axis))).saturating_sub(size_in[axis]);
                let (less, more) = (needed / 2, needed - needed / 2);
                (pads[axis], pads[axes + axis]) = if mode == "SAME_UPPER" { (less, more) } else { (more, less) };
            }
        }
        other => return Err(Error::data(format!("auto_pad {other:?}"))),
    }
    let (before, asked) = (pads[..axes].to_vec(), pads[axes..].to_vec());
    let mut after = asked.clone();
    if rounds_up {
        for axis in 0..axes {
            let whole = size_in[axis].saturating_add(before[axis]).saturating_add(asked[axis]);
            let steps = whole.saturating_sub(extent(axis)).div_ceil(stride[axis]);
            // The last window begins inside the input or the padding before it.
            let steps = if steps * stride[axis] >= size_in[axis].saturating_add(before[axis]) { steps.saturating_sub(1) } else { steps };
            let reach = (steps * stride[axis]).saturating_add(extent(axis));
            after[axis] = reach.saturating_sub(size_in[axis].saturating_add(before[axis])).max(if reach > whole { 0 } else { asked[axis] });
        }
    }
    let window = Window {
        kernel: padded(kernel, 1),
        stride: padded(&stride, 1),
        dilation: padded(&dilation, 1),
        pad_before: padded(&before, 0),
        pad_after: padded(&after, 0),
    };
    Ok((window, padded(&asked, 0)))
}

pub(super) fn groups(call: &Call<'_>) -> Result<usize> {
    let groups = call.attributes.int_or("group", 1)?;
    usize::try_from(groups).ok().filter(|groups| *groups > 0).ok_or_else(|| Error::data(format!("group {groups}")))
}

/// Groups and window of a convolution of `x` with filters.
pub(super) fn convolution_of(call: &Call<'_>, x: &Value, filters: &Value) -> Result<(usize, Window)> {
    call.attributes.ints("kernel_shape")?;
    let (window, _) = window(call, space(x)?, filters.dims.get(2..).unwrap_or_default())?;
    Ok((groups(call)?, window))
}

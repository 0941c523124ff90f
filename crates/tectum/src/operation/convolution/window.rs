//! Which elements of the input an element of the output reads.

use crate::error::{Error, Result};

/// Elements along an axis of space, padded, that positions may count: they are signed 32-bit
/// numbers on devices.
const MAX_EXTENT: usize = i32::MAX as usize / 2;

/// Elements of a channel, padded.
const MAX_POSITIONS: u64 = u32::MAX as u64;

/// The window that slides over the axes of space: depth, height, width. An axis that is not used
/// has kernel 1, stride 1, dilation 1 and no padding.
///
/// Output position `o` reads the input positions `o · stride − pad_before + q · dilation` for `q`
/// in `0..kernel`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Elements of the window.
    pub kernel: [usize; 3],
    /// Input elements from one output element to the next.
    pub stride: [usize; 3],
    /// Input elements from one element of the window to the next.
    pub dilation: [usize; 3],
    /// Elements outside the input before its first one.
    pub pad_before: [usize; 3],
    /// Elements outside the input after its last one.
    pub pad_after: [usize; 3],
}

impl Window {
    /// A window with stride and dilation 1, without padding.
    pub fn new(kernel: [usize; 3]) -> Self {
        Self {
            kernel,
            stride: [1; 3],
            dilation: [1; 3],
            pad_before: [0; 3],
            pad_after: [0; 3],
        }
    }

    /// Elements of the window; saturated for one that fits nowhere.
    pub fn taps(&self) -> usize {
        self.kernel
            .iter()
            .fold(1, |taps: usize, size| taps.saturating_mul(*size))
    }

    /// The size of the output: ⌊(size_in + pad_before + pad_after − (kernel − 1) · dilation − 1) /
    /// stride⌋ + 1 along each axis.
    ///
    /// # Errors
    /// `Invalid`, naming the axis, if kernel, stride or dilation is 0, the window is larger than
    /// the padded input, or there are more than 2³⁰ positions; if all axes of the padded input
    /// together have 2³² positions or more.
    ///
    /// # Example
    /// ```
    /// use tectum::Window;
    /// let window = Window { stride: [1, 2, 2], pad_before: [0, 3, 3], pad_after: [0, 3, 3], ..Window::new([1, 7, 7]) };
    /// assert_eq!(window.size_out([1, 224, 224])?, [1, 112, 112]);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn size_out(&self, size_in: [usize; 3]) -> Result<[usize; 3]> {
        let (mut size_out, mut whole) = ([0; 3], [0; 3]);
        for axis in 0..3 {
            let padded = self.padded(axis, size_in[axis])?;
            whole[axis] = padded;
            let extent = self.extent(axis)?;
            let Some(steps) = padded.checked_sub(extent) else {
                return Err(self.fault(
                    axis,
                    format_args!(
                        "{extent} elements are more than the {padded} of the padded input"
                    ),
                ));
            };
            size_out[axis] = steps / self.stride[axis] + 1;
        }
        check_positions(whole)?;
        Ok(size_out)
    }

    /// The size of the output of the transposed convolution: (size_in − 1) · stride + (kernel − 1)
    /// · dilation + 1 + output_padding − pad_before − pad_after along each axis.
    ///
    /// # Errors
    /// `Invalid`, naming the axis, if kernel, stride, dilation or size_in is 0, less than one
    /// element is left, or there are more than 2³⁰ positions; if all axes, before padding is
    /// removed, together have 2³² positions or more.
    pub fn transposed_size_out(
        &self,
        size_in: [usize; 3],
        output_padding: [usize; 3],
    ) -> Result<[usize; 3]> {
        let (mut size_out, mut whole) = ([0; 3], [0; 3]);
        for axis in 0..3 {
            let (extent, pads) = (self.extent(axis)?, self.padded(axis, 0)?);
            let steps = size_in[axis]
                .checked_sub(1)
                .and_then(|steps| steps.checked_mul(self.stride[axis]))
                .filter(|steps| *steps <= MAX_EXTENT);
            let steps = steps.filter(|_| output_padding[axis] <= MAX_EXTENT);
            whole[axis] = steps.map_or(0, |steps| steps + extent + output_padding[axis]);
            let left = whole[axis]
                .checked_sub(pads)
                .filter(|left| (1..=MAX_EXTENT).contains(left));
            let Some(left) = left else {
                return Err(self.fault(
                    axis,
                    format_args!(
                        "no output is left of {} inputs, or more than {MAX_EXTENT} elements",
                        size_in[axis]
                    ),
                ));
            };
            size_out[axis] = left;
        }
        check_positions(whole)?;
        Ok(size_out)
    }

    /// Elements from the first to the last of the window.
    fn extent(&self, axis: usize) -> Result<usize> {
        if self.kernel[axis] == 0 || self.stride[axis] == 0 || self.dilation[axis] == 0 {
            return Err(self.fault(
                axis,
                format_args!("kernel, stride and dilation need at least 1"),
            ));
        }
        let is_counted = self.stride[axis] <= MAX_EXTENT && self.dilation[axis] <= MAX_EXTENT;
        let extent = (self.kernel[axis] - 1)
            .checked_mul(self.dilation[axis])
            .filter(|extent| is_counted && *extent < MAX_EXTENT);
        extent
            .map(|extent| extent + 1)
            .ok_or_else(|| self.fault(axis, format_args!("more than {MAX_EXTENT} elements")))
    }

    fn padded(&self, axis: usize, size_in: usize) -> Result<usize> {
        let padded = size_in
            .checked_add(self.pad_before[axis])
            .and_then(|size| size.checked_add(self.pad_after[axis]));
        padded
            .filter(|padded| *padded <= MAX_EXTENT)
            .ok_or_else(|| self.fault(axis, format_args!("more than {MAX_EXTENT} elements")))
    }

    fn fault(&self, axis: usize, what: std::fmt::Arguments<'_>) -> Error {
        let Window {
            kernel,
            stride,
            dilation,
            pad_before,
            pad_after,
        } = self;
        let name = ["depth", "height", "width"][axis];
        let [kernel, stride, dilation, before, after] =
            [kernel, stride, dilation, pad_before, pad_after].map(|sizes| sizes[axis]);
        Error::invalid(format!(
            "window along {name}: kernel {kernel}, stride {stride}, dilation {dilation}, padding {before} and {after}: {what}"
        ))
    }
}

/// Refuses sizes that a padded channel cannot have, although each axis can.
fn check_positions(sizes: [usize; 3]) -> Result<()> {
    let positions = sizes.iter().try_fold(1u64, |positions, size| {
        positions
            .checked_mul(*size as u64)
            .filter(|positions| *positions <= MAX_POSITIONS)
    });
    positions.map(|_| ()).ok_or_else(|| {
        Error::invalid(format!(
            "window over {sizes:?} positions: more than {MAX_POSITIONS}"
        ))
    })
}

/// The sizes of a window's use, of a kernel's parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Geometry {
    pub size_in: [usize; 3],
    pub size_out: [usize; 3],
    pub kernel: [usize; 3],
    pub stride: [usize; 3],
    pub dilation: [usize; 3],
    pub pad: [usize; 3],
}

impl Geometry {
    /// Elements of an output channel.
    pub fn pixels(&self) -> usize {
        self.size_out.iter().product()
    }

    /// Elements of an input channel.
    pub fn volume(&self) -> usize {
        self.size_in.iter().product()
    }

    /// Elements of the window.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// The elements of the window in the order of a filter.
    pub fn each_tap(&self) -> impl Iterator<Item = [usize; 3]> {
        let [planes, rows, columns] = self.kernel;
        (0..planes).flat_map(move |plane| {
            (0..rows).flat_map(move |row| (0..columns).map(move |column| [plane, row, column]))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_definition() {
        let window = Window {
            stride: [1, 2, 3],
            dilation: [2, 1, 1],
            pad_before: [1, 0, 2],
            pad_after: [0, 1, 2],
            ..Window::new([2, 3, 5])
        };
        assert_eq!(window.size_out([4, 8, 9]).ok(), Some([3, 4, 3]));
        assert_eq!(
            window.transposed_size_out([3, 4, 3], [0; 3]).ok(),
            Some([4, 8, 7])
        );
        assert_eq!(
            window.transposed_size_out([3, 4, 3], [0, 0, 2]).ok(),
            Some([4, 8, 9])
        );
    }

    #[test]
    fn windows_that_fit_nowhere_are_refused_with_their_axis() {
        let refused = |window: Window, size_in| {
            window
                .size_out(size_in)
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert_eq!(
            refused(Window::new([1, 3, 1]), [1, 2, 5]),
            "window along height: kernel 3, stride 1, dilation 1, padding 0 and 0: 3 elements are more than the 2 of the padded input"
        );
        for window in [
            Window::new([1, 1, 0]),
            Window {
                stride: [1, 1, 0],
                ..Window::new([1; 3])
            },
            Window {
                dilation: [1, 1, 0],
                ..Window::new([1; 3])
            },
        ] {
            assert!(
                refused(window, [1; 3]).contains("along width"),
                "{window:?}"
            );
        }
        assert!(
            Window {
                pad_before: [usize::MAX, 0, 0],
                ..Window::new([1; 3])
            }
            .size_out([1; 3])
            .is_err()
        );
        assert!(
            Window {
                dilation: [usize::MAX, 1, 1],
                ..Window::new([3; 3])
            }
            .size_out([9; 3])
            .is_err()
        );
        assert!(
            Window {
                dilation: [1 << 32, 1, 1],
                ..Window::new([1; 3])
            }
            .size_out([9; 3])
            .is_err()
        );
        assert!(
            Window {
                pad_before: [0, 0, 1],
                ..Window::new([1; 3])
            }
            .transposed_size_out([1; 3], [0; 3])
            .is_err()
        );
        let padded = Window {
            pad_before: [1 << 20; 3],
            stride: [1 << 20; 3],
            ..Window::new([1; 3])
        };
        assert_eq!(
            refused(padded, [1; 3]),
            "window over [1048577, 1048577, 1048577] positions: more than 4294967295"
        );
        assert!(
            Window {
                dilation: [1 << 20; 3],
                ..Window::new([2; 3])
            }
            .transposed_size_out([1; 3], [0; 3])
            .is_err()
        );
    }
}

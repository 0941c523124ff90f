//! The exponentials of whole slices, faster than a loop over the functions of one argument and with
//! the same bits: a slice is four streams, one for each quarter.

use super::single::{self, four};
use crate::kernel::native::simd;

macro_rules! slices {
    ($($function:ident)*) => {
        $(
            /// The function of this name for each element of a slice, into one of the same length.
            pub fn $function(x: &[f32], y: &mut [f32]) {
                simd(
                    #[inline(always)]
                    || {
                        let quarter = x.len() / 4;
                        let ((x, x_rest), (y, y_rest)) = (x.split_at(4 * quarter), y.split_at_mut(4 * quarter));
                        let ((x01, x23), (y01, y23)) = (x.split_at(2 * quarter), y.split_at_mut(2 * quarter));
                        let ((x0, x1), (y0, y1)) = (x01.split_at(quarter), y01.split_at_mut(quarter));
                        let ((x2, x3), (y2, y3)) = (x23.split_at(quarter), y23.split_at_mut(quarter));
                        for i in 0..quarter {
                            let four::Four(y) = four::$function(four::Four([x0[i], x1[i], x2[i], x3[i]]));
                            (y0[i], y1[i], y2[i], y3[i]) = (y[0], y[1], y[2], y[3]);
                        }
                        for (y, &x) in y_rest.iter_mut().zip(x_rest) {
                            *y = single::$function(x);
                        }
                    },
                );
            }
        )*
    };
}

slices! { exp exp2 tanh sigmoid }

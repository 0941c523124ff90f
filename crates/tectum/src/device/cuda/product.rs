//! Matrix products as the library computes them, which reads matrices by columns.

use crate::kernel::MatrixProduct;
use crate::launch::Launch;

/// An operand as the library sees it: the transpose of ours, column-major.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operand {
    /// Whether the library has to transpose it.
    pub transposed: bool,
    /// Elements from column to column.
    pub leading: u32,
}

/// `y[m, n] = a[m, k]·b[k, n] + bias[n] + residual[m, n]`; the last two name the launch's regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Product {
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub a: Operand,
    pub b: Operand,
    pub bias: Option<usize>,
    pub residual: Option<usize>,
}

impl Product {
    /// The product that a launch computes, if it is one for the library.
    pub fn of(launch: &Launch) -> Option<Self> {
        let MatrixProduct {
            sizes,
            a_strides,
            b_strides,
        } = launch.kernel.matrix_product(&launch.params)?;
        let [m, n, k] = sizes.map(|size| size as u32);
        let region = |name: &str| {
            launch
                .kernel
                .bindings()
                .iter()
                .position(|binding| binding.name == name)
        };
        Some(Self {
            m,
            n,
            k,
            a: operand([m, k], a_strides)?,
            b: operand([k, n], b_strides)?,
            bias: region("bias"),
            residual: region("residual"),
        })
    }
}

/// A `rows` × `cols` operand by its strides: its rows are the library's columns, or its columns
/// are.
fn operand([rows, cols]: [u32; 2], strides: [usize; 2]) -> Option<Operand> {
    let [row, col] = strides.map(|stride| stride as u32);
    if col == 1 && row >= cols {
        Some(Operand {
            transposed: false,
            leading: row,
        })
    } else if row == 1 && col >= rows {
        Some(Operand {
            transposed: true,
            leading: col,
        })
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::dtype::DType;
    use crate::operation::elementwise::transfer::COPY;
    use crate::operation::product::gemm::matvec_kernel;
    use crate::operation::product::gemm::{Activation, Epilogue, gemm_kernel};

    fn launch(bias: bool, residual: bool, params: [u32; 8]) -> Launch {
        let kernel = Arc::clone(gemm_kernel(Epilogue { bias, residual }, DType::F32));
        Launch {
            kernel,
            regions: Vec::new(),
            params: params.to_vec(),
            groups: [1, 1],
        }
    }

    #[test]
    fn products_are_recognised_with_their_transposes() {
        let plain = |leading| Operand {
            transposed: false,
            leading,
        };
        let transposed = |leading| Operand {
            transposed: true,
            leading,
        };
        for (params, a, b) in [
            ([2, 3, 5, 5, 1, 3, 1, 0], plain(5), plain(3)),
            ([2, 3, 5, 1, 2, 3, 1, 0], transposed(2), plain(3)),
            ([2, 3, 5, 5, 1, 1, 5, 0], plain(5), transposed(5)),
            // A single row or column: only one of the two readings has a leading dimension that is
            // long enough.
            ([1, 3, 5, 1, 1, 3, 1, 0], transposed(1), plain(3)),
            ([2, 1, 5, 5, 1, 1, 1, 0], plain(5), plain(1)),
        ] {
            let product = Product::of(&launch(false, false, params)).expect("a product");
            assert_eq!(
                (product.m, product.n, product.k, product.a, product.b),
                (params[0], params[1], params[2], a, b)
            );
        }
    }

    #[test]
    fn tails_name_their_regions() {
        for (bias, residual, regions) in [
            (false, false, (None, None)),
            (true, false, (Some(3), None)),
            (false, true, (None, Some(3))),
            (true, true, (Some(3), Some(4))),
        ] {
            let product =
                Product::of(&launch(bias, residual, [2, 3, 5, 5, 1, 3, 1, 0])).expect("a product");
            assert_eq!((product.bias, product.residual), regions);
        }
    }

    #[test]
    fn everything_else_is_left_to_its_kernel() {
        for activation in Activation::ALL.into_iter().skip(1) {
            assert_eq!(
                Product::of(&launch(
                    true,
                    false,
                    [2, 3, 5, 5, 1, 3, 1, activation as u32]
                )),
                None
            );
        }
        assert_eq!(
            Product::of(&launch(false, false, [2, 3, 5, 7, 2, 3, 1, 0])),
            None,
            "strides of neither axis"
        );
        let matvec = Arc::clone(matvec_kernel(
            Epilogue {
                bias: false,
                residual: false,
            },
            DType::F32,
        ));
        for (kernel, params) in [(matvec, vec![2, 3, 0]), (COPY.clone(), vec![4])] {
            assert_eq!(
                Product::of(&Launch {
                    kernel,
                    regions: Vec::new(),
                    params,
                    groups: [1, 1]
                }),
                None
            );
        }
    }
}

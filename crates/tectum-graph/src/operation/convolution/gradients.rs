//! Gradients of convolutions, made of convolutions.

use tectum::Window;

use super::{image, space};
use crate::operation::{GraphBuilder, Node, Result, Shape};

/// Products that one element of a filter's gradient adds up before the sums of images are added: a
/// GPU adds them one after another.
const MAX_TERMS: usize = 4096;

/// Elements at the end of each axis of the padded input that no window reads.
pub(in crate::operation) fn unread(window: &Window, size_in: [usize; 3]) -> [usize; 3] {
    std::array::from_fn(|axis| {
        let padded = size_in[axis] + window.pad_before[axis] + window.pad_after[axis];
        (padded - (window.kernel[axis] - 1) * window.dilation[axis] - 1) % window.stride[axis]
    })
}

/// Images of one sum: the maximum number that divides all of them and keeps a sum within
/// [`MAX_TERMS`].
fn images_per_sum(images: usize, pixels: usize) -> usize {
    (1..=images)
        .rev()
        .find(|each| images.is_multiple_of(*each) && each * pixels <= MAX_TERMS)
        .unwrap_or(1)
}

impl GraphBuilder {
    /// The gradient at the filters: `w[m, c, q] = Σ fine[n, c, o·stride + q·dilation − pad] ·
    /// coarse[n, m, o]` over all n and o.
    ///
    /// It is a convolution in which the elements of `coarse` are the window, images and channels
    /// are exchanged, and so are stride and dilation. Images are groups of it, so that sums are
    /// short and made in parallel; of filters that read one channel each image is one. Filters of
    /// one element are a product.
    ///
    /// # Shapes
    /// `fine` [N, C, ..], `coarse` [N, M, ..]; gives [M, C / groups, ..]. `unread` elements at the
    /// end of the padded axes of `fine` reach no element of `coarse`.
    pub(super) fn filter_gradient(
        &mut self,
        [fine, coarse]: [Node; 2],
        groups: usize,
        window: &Window,
        unread: [usize; 3],
    ) -> Result<Node> {
        let ([images, channels, ..], small) =
            (image(self.shape_of(fine)?), image(self.shape_of(coarse)?));
        let (filters, per_group, pixels) = (
            small[1],
            channels / groups,
            space(small).iter().product::<usize>(),
        );
        if (window.kernel, window.stride, window.pad_before, unread)
            == ([1; 3], [1; 3], [0; 3], [0; 3])
            && window.pad_after == [0; 3]
        {
            let product = self.product_of_images([fine, coarse], groups)?;
            return self.reshape(
                product,
                shape_of(
                    &[filters, per_group],
                    &window.kernel[5 - self.shape_of(fine)?.rank()..],
                ),
            );
        }
        let each = if per_group == 1 && filters == groups {
            1
        } else {
            images_per_sum(images, pixels)
        };
        let parts = images / each;
        let (fine, pad_after) = self.read_part(fine, window, unread)?;
        let (big, rank) = (self.shape_of(fine)?.fixed(), self.shape_of(fine)?.rank());
        let volume = big[2..].iter().product::<usize>();

        // Each group has the channels [each] of the images [per_group] and the filters [filters /
        // groups].
        let turned = self.reshape(fine, [parts, each, groups, per_group, volume])?;
        let turned = self.permute(turned, &[3, 0, 2, 1, 4])?;
        let turned = self.reshape(
            turned,
            shape_of(&[per_group, parts * groups * each], &big[2..]),
        )?;
        let by = self.reshape(coarse, [parts, each, filters, pixels])?;
        let by = self.permute(by, &[0, 2, 1, 3])?;
        let by = self.reshape(
            by,
            shape_of(&[parts * filters, each], &space(small)[5 - rank..]),
        )?;
        let exchanged = Window {
            kernel: space(small),
            stride: window.dilation,
            dilation: window.stride,
            pad_before: window.pad_before,
            pad_after,
        };
        let made = self.convolution(turned, by, None, parts * groups, exchanged)?;

        let made = self.first_elements(made, window.kernel)?;
        let made = self.reshape(made, [per_group, parts, filters, window.taps()])?;
        let made = self.permute(made, &[1, 2, 0, 3])?;
        let sum = self.reduce_to(made, Shape::from([filters, per_group, window.taps()]))?;
        self.reshape(
            sum,
            shape_of(&[filters, per_group], &window.kernel[5 - rank..]),
        )
    }

    /// The products of the channels of two values [N, C, ..] of the same space, summed over images
    /// and space: for each group [M / groups, C / groups].
    fn product_of_images(&mut self, [fine, coarse]: [Node; 2], groups: usize) -> Result<Node> {
        let [fine, coarse] = [fine, coarse].map(|node| {
            let [images, channels, planes, rows, columns] = image(self.shape_of(node)?);
            let pixels = planes * rows * columns;
            let channels_first = self.reshape(node, [images, channels, pixels])?;
            let channels_first = self.permute(channels_first, &[1, 0, 2])?;
            // One group is a product of two matrices.
            let rows = channels / groups;
            if groups == 1 {
                self.reshape(channels_first, [rows, images * pixels])
            } else {
                self.reshape(channels_first, [groups, rows, images * pixels])
            }
        });
        self.matmul(coarse?, fine?.transpose())
    }

    /// The part of a value [N, C, ..] that windows read, and the padding after it.
    fn read_part(
        &mut self,
        mut x: Node,
        window: &Window,
        unread: [usize; 3],
    ) -> Result<(Node, [usize; 3])> {
        let (rank, size) = (self.shape_of(x)?.rank(), space(image(self.shape_of(x)?)));
        let mut pad_after = window.pad_after;
        for axis in 5 - rank..3 {
            let inside = unread[axis].saturating_sub(pad_after[axis]);
            pad_after[axis] -= unread[axis] - inside;
            // Where windows read only padding, the whole value stays: more is computed than needed.
            if size[axis] > inside {
                x = self.slice(x, axis + rank - 3, 0, size[axis] - inside)?;
            }
        }
        Ok((x, pad_after))
    }

    /// The first elements of each axis of space of a value [N, C, ..].
    pub(super) fn first_elements(&mut self, x: Node, size: [usize; 3]) -> Result<Node> {
        let rank = self.shape_of(x)?.rank();
        (5 - rank..3).try_fold(x, |x, axis| self.slice(x, axis + rank - 3, 0, size[axis]))
    }

    /// The sum of each channel of a value [N, C, ..].
    pub(super) fn channel_sums(&mut self, x: Node) -> Result<Node> {
        let [images, channels, planes, rows, columns] = image(self.shape_of(x)?);
        let flat = self.reshape(x, [images, channels, planes * rows * columns])?;
        let sums = self.reduce_to(flat, Shape::from([channels, 1]))?;
        self.reshape(sums, [channels])
    }
}

/// A shape of two sizes and the axes of space.
fn shape_of(first: &[usize; 2], space: &[usize]) -> Shape {
    Shape::of(
        &first
            .iter()
            .chain(space)
            .map(|size| (*size).into())
            .collect::<Vec<_>>(),
    )
}

//! The launches of a cycle, in three parts that are in one plan or in separate plans.

use std::ops::Range;

use tectum::{DType, PlanBuilder, Result, View};

use super::kernels::{
    self, ACT, Act, Evolve, PLACE, POOL, Place, Pool, RECALL, Recall, SENSE, SIMILARITY, Sense,
    Similarity,
};
use super::layout::*;
use super::options::Options;
use super::shape::{REGIONS, Shape};
use super::state::library_lengths;
use super::waves::Waves;

/// Patterns that a workgroup compares together.
const ROWS_PER_GROUP: usize = 16;

/// The configuration of a field, for recording.
pub struct FieldConfig<'a> {
    pub shape: &'a Shape,
    pub options: &'a Options,
    pub waves: &'a Waves,
}

/// The state of a field in addition to its cells.
#[derive(Clone, Copy)]
pub struct GlobalState {
    pub memory: View,
    pub descriptor: View,
    /// The library and its traits.
    pub library: Option<[View; 2]>,
}

impl GlobalState {
    /// The states of a plan.
    pub fn states(plan: &mut PlanBuilder, source: &FieldConfig<'_>) -> Self {
        let [library, traits] = library_lengths(source.shape, source.options.patterns);
        let is_kept = source.options.patterns > 0;
        Self {
            memory: plan.state("memory", DType::F32, MEMORY_WORDS),
            descriptor: plan.state("descriptor", DType::F32, source.descriptor_len()),
            library: is_kept.then(|| {
                [
                    plan.state("library", DType::F32, library),
                    plan.state("traits", DType::F32, traits),
                ]
            }),
        }
    }

    /// The states in order.
    pub fn views(&self) -> impl Iterator<Item = View> {
        [self.memory, self.descriptor]
            .into_iter()
            .chain(self.library.into_iter().flatten())
    }
}

/// The views that the step of some planes reads and writes.
pub struct Evolution {
    pub live: View,
    pub control: View,
    pub pull: View,
    /// The planes before and after the step; with one more on either side unless they are all
    /// planes.
    pub old: View,
    pub new: View,
    pub rows: View,
    pub sites: View,
}

/// The views that the end of a cycle reads and writes.
pub struct Action {
    pub rows: View,
    pub live: View,
    pub control: View,
    pub sites: View,
    pub memory: View,
    pub descriptor: View,
    pub report: View,
}

impl FieldConfig<'_> {
    /// Length of the regions' means, and of the recall by region.
    pub fn descriptor_len(&self) -> usize {
        REGIONS * self.shape.content()
    }

    /// Length of the means of the sites in a number of planes along X.
    pub fn sites_len(&self, planes: usize) -> usize {
        let [_, y, z] = self.shape.sites();
        planes / self.shape.block() * y * z * self.shape.content()
    }

    /// Length of the sums of the rows in a number of planes along X.
    pub fn rows_len(&self, planes: usize) -> usize {
        planes * self.shape.cells()[1] * ROW_WORDS
    }

    /// Words of a number of planes along X.
    pub fn plane_words(&self, planes: usize) -> usize {
        self.options
            .storage
            .words(planes * self.shape.elements() / self.shape.cells()[0])
    }

    /// Records recall, prediction, error, modulation and the place of the imprint; `pull` is
    /// written if there is a library.
    pub fn sense(
        &self,
        plan: &mut PlanBuilder,
        live: View,
        global_state: &GlobalState,
        sites: View,
        pull: Option<View>,
        control: View,
    ) -> Result<()> {
        let (content, channels, patterns) = (
            self.shape.content(),
            self.shape.channels(),
            self.options.patterns,
        );
        let &GlobalState {
            descriptor, memory, ..
        } = global_state;
        if let (Some([library, traits]), Some(pull)) = (global_state.library, pull) {
            let kept = patterns + ATTRACTORS;
            let products = plan.temp(DType::F32, kept);
            plan.launch(
                &SIMILARITY,
                Similarity {
                    descriptor,
                    library,
                    traits,
                    products,
                    kept,
                    content,
                },
                kept.div_ceil(ROWS_PER_GROUP) as u32,
            )?;
            plan.launch(
                &RECALL,
                Recall {
                    live,
                    descriptor,
                    products,
                    library,
                    traits,
                    memory,
                    pull,
                    patterns,
                    content,
                    channels,
                },
                1,
            )?;
        }
        let (sensors, motors) = (self.options.sensors, self.options.motors);
        plan.launch(
            &SENSE,
            Sense {
                live,
                descriptor,
                memory,
                control,
                sensors,
                motors,
                content,
                channels,
            },
            1,
        )?;
        let [sites_x, sites_y, sites_z] = self.shape.sites();
        plan.launch(
            &PLACE,
            Place {
                sites,
                control,
                sites_x,
                sites_y,
                sites_z,
                content,
                block: self.shape.block(),
            },
            1,
        )
    }

    /// Records the step of the planes of a range along X, and the means of their sites.
    pub fn evolve(
        &self,
        plan: &mut PlanBuilder,
        planes: &Range<usize>,
        views: &Evolution,
    ) -> Result<()> {
        let [nx, ny, nz] = self.shape.cells();
        let (channels, block, content) = (
            self.shape.channels(),
            self.shape.block(),
            self.shape.content(),
        );
        let tables = plan.constant("waves", &self.waves.tables(self.shape));
        let rows = planes.len() * self.shape.cells()[1];
        let pooled = plan.temp(
            DType::F32,
            rows * self.shape.sites()[2] * self.shape.content(),
        );
        let &Evolution {
            live,
            control,
            pull,
            old: x,
            new: y,
            rows: row_sums,
            sites,
        } = views;
        let (boundary, first, planes) = (self.options.boundary as u32, planes.start, planes.len());
        #[rustfmt::skip]
        let arguments = Evolve { x, live, control, tables, pull, y, rows: row_sums, pooled, nx, ny, nz, channels, boundary, block, first, planes };
        plan.launch(
            kernels::evolve(self.options.storage),
            arguments,
            rows as u32,
        )?;
        plan.launch(
            &POOL,
            Pool {
                pooled,
                sites,
                nx: planes,
                ny,
                nz,
                content,
                block,
            },
            tectum::kernel::groups_for(sites.len()),
        )
    }

    /// Records statistics, regions and motors.
    pub fn act(&self, plan: &mut PlanBuilder, views: &Action) -> Result<()> {
        let [nx, ny, nz] = self.shape.cells();
        let (content, channels, block, motors) = (
            self.shape.content(),
            self.shape.channels(),
            self.shape.block(),
            self.options.motors,
        );
        let &Action {
            rows,
            live,
            control,
            sites: site_means,
            memory,
            descriptor,
            report,
        } = views;
        plan.launch(
            &ACT,
            Act {
                rows,
                live,
                control,
                site_means,
                memory,
                descriptor,
                report,
                nx,
                ny,
                nz,
                content,
                channels,
                block,
                motors,
            },
            1,
        )
    }
}

//! The cache of compiled launches, with the lowered programs that they come from.
//!
//! A key holds the whole program, including constants, the launch, the sizes and the device; two
//! different launches never share an entry. Devices cache the machine code of kernels themselves,
//! by content hash of their text.

use std::sync::{Arc, LazyLock, Mutex};

use tectum::internal::LruCache;
use tectum::route::Target;
use tectum::{DeviceInfo, Result};

use super::cache::{CacheCounts, CodeKey, LoweredCache, counts, locked};
use super::{
    Bounded, Bounds, BufferIndex, Checked, Contents, LaunchConfig, Lowered, ProgramRun, Recognize,
};

/// Capacity of the shared cache in compiled launches; each holds its buffers.
const MAX_RUNS: usize = 32;

/// Everything that a compiled launch depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RunKey {
    code: CodeKey,
    launch: LaunchConfig,
    sizes: Vec<u64>,
    recognize: Recognize,
    /// The contents to assume, whether they were used or not.
    contents: Vec<(BufferIndex, Vec<u8>)>,
    /// None where the device was chosen.
    device: Option<DeviceKey>,
}

/// What distinguishes a device from others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct DeviceKey {
    id: String,
    driver: String,
    /// Distinguishes live devices of the same id, such as null devices. A cached run keeps its
    /// device alive.
    instance: usize,
}

impl DeviceKey {
    fn of(info: &DeviceInfo) -> Self {
        Self {
            id: info.id.clone(),
            driver: info.driver.clone(),
            instance: std::ptr::from_ref(info).addr(),
        }
    }
}

/// A compiled launch that several callers may share, one at a time.
type SharedRun = Arc<Mutex<ProgramRun>>;

/// Lowered programs and compiled launches; of each, the least recently used is evicted first.
pub struct ProgramCache {
    lowered: Arc<LoweredCache>,
    runs: Mutex<LruCache<RunKey, SharedRun>>,
}

impl std::fmt::Debug for ProgramCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgramCache")
            .field("lowered", &self.lowered_counts())
            .field("runs", &self.run_counts())
            .finish()
    }
}

impl ProgramCache {
    /// A cache with these capacities for lowered programs and compiled launches.
    pub fn new(max_lowered: usize, max_runs: usize) -> Self {
        Self {
            lowered: Arc::new(LoweredCache::new(max_lowered)),
            runs: Mutex::new(LruCache::new(max_runs)),
        }
    }

    /// The process's cache, whose lowered programs [`Checked::record`] uses.
    pub fn shared() -> &'static ProgramCache {
        static SHARED: LazyLock<ProgramCache> = LazyLock::new(|| ProgramCache {
            lowered: LoweredCache::shared().clone(),
            runs: Mutex::new(LruCache::new(MAX_RUNS)),
        });
        &SHARED
    }

    /// A program as a kernel, lowered at the first call.
    ///
    /// # Errors
    /// As [`Checked::lower_or_native`]; failures are not cached.
    pub fn lowered(
        &self,
        program: &Checked,
        launch: &LaunchConfig,
        bounds: Bounds,
    ) -> Result<Lowered> {
        self.lowered.lowered(program, launch, bounds)
    }

    /// A launch compiled for a device with its buffers, made at the first call; the same one for
    /// the same program, launch, sizes and device. Its buffers hold what the last run left.
    ///
    /// # Errors
    /// As [`Bounded::plan`] and [`ProgramPlan::compile`](super::ProgramPlan::compile); failures are
    /// not cached.
    ///
    /// # Example
    /// ```
    /// use tectum::Device;
    /// use tectum_programs::{BufferIndex, LaunchConfig, Program, ProgramCache};
    /// let cache = ProgramCache::new(8, 8);
    /// let device = Device::open("cpu")?;
    /// let program = Program::parse("buffer x: i32 read_write\nldg.i32 r0, [x]\nadd.i32 r0, r0, r0\nstg.i32 [x], r0")?.check()?;
    /// for value in [1u8, 5] {
    ///     let bounded = program.bound(&LaunchConfig::linear(1, 32), &[4])?;
    ///     let run = cache.run(&bounded, &device)?;
    ///     let mut run = run.lock().expect("nothing panicked");
    ///     run.input(BufferIndex(0))[0] = value;
    ///     run.run()?;
    ///     assert_eq!(run.output(BufferIndex(0))[0], 2 * value);
    /// }
    /// assert_eq!((cache.run_counts().hits, cache.run_counts().misses), (1, 1));
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn run<'d>(
        &self,
        bounded: &Bounded,
        target: impl Into<Target<'d>>,
    ) -> Result<Arc<Mutex<ProgramRun>>> {
        self.run_as(bounded, target, Recognize::Exact, &[])
    }

    /// As [`ProgramCache::run`] of [`Bounded::plan_as`]. The result of recognition is cached with
    /// its launch: on a hit it is not repeated.
    ///
    /// # Errors
    /// As [`Bounded::plan_as`] and [`ProgramPlan::compile`](super::ProgramPlan::compile); failures
    /// are not cached.
    pub fn run_as<'d>(
        &self,
        bounded: &Bounded,
        target: impl Into<Target<'d>>,
        recognize: Recognize,
        contents: &Contents<'_>,
    ) -> Result<Arc<Mutex<ProgramRun>>> {
        let target = target.into();
        let key = RunKey {
            code: CodeKey::of(bounded.checked(), bounded.launch(), bounded.bounds()),
            launch: *bounded.launch(),
            sizes: bounded.sizes().to_vec(),
            recognize,
            contents: contents
                .iter()
                .map(|(index, bytes)| (*index, bytes.to_vec()))
                .collect(),
            device: match target {
                Target::Device(device) => Some(DeviceKey::of(device.info())),
                Target::Auto => None,
            },
        };
        let found = locked(&self.runs).get(&key);
        if let Some(run) = found {
            return Ok(run);
        }
        // Without the lock: compiling takes long, and writes log records, whose receiver may run
        // programs.
        let run = Arc::new(Mutex::new(
            bounded
                .plan_in(&self.lowered, recognize, contents)?
                .compile(target)?,
        ));
        locked(&self.runs).insert(key, run.clone());
        Ok(run)
    }

    /// Hits and misses of lowered programs.
    pub fn lowered_counts(&self) -> CacheCounts {
        self.lowered.counts()
    }

    /// Hits and misses of compiled launches.
    pub fn run_counts(&self) -> CacheCounts {
        counts(&locked(&self.runs))
    }
}

#[cfg(test)]
mod tests {
    use tectum::Device;

    use super::*;
    use crate::Program;

    fn add(constant: &str) -> Checked {
        let text = format!(
            "buffer x: f32 read_write\nldg.f32 r0, [x]\nmov_imm.f32 r1, {constant}\nadd.f32 r0, r0, r1\nstg.f32 [x], r0"
        );
        Program::parse(&text)
            .and_then(|program| program.check())
            .expect("valid")
    }

    fn bounded(program: &Checked, n: u32) -> Bounded {
        program
            .bound(&LaunchConfig::linear(n, 32), &[u64::from(4 * n)])
            .expect("fits")
    }

    fn counted(counts: CacheCounts) -> (u64, u64, usize) {
        (counts.hits, counts.misses, counts.entries)
    }

    #[test]
    fn a_program_is_lowered_once_for_what_its_code_depends_on() {
        let cache = ProgramCache::new(8, 8);
        let lower = |text: &str, launch, bounds| {
            let program = Program::parse(text)
                .and_then(|program| program.check())
                .expect("valid");
            cache.lowered(&program, &launch, bounds).expect("lowers");
            counted(cache.lowered_counts())
        };
        let free = "buffer x: u32 write\nmov_imm.u32 r0, 1\nstg.u32 [x], r0";
        assert_eq!(
            lower(free, LaunchConfig::linear(100, 32), Bounds::Proven),
            (0, 1, 1)
        );
        // The launch does not matter to a program without blocks; the handling of faults does.
        assert_eq!(
            lower(free, LaunchConfig::linear(7, 256), Bounds::Proven),
            (1, 1, 1)
        );
        assert_eq!(
            lower(free, LaunchConfig::linear(7, 256), Bounds::Checked),
            (1, 2, 2)
        );
        let meets = "buffer x: u32 write\nshared 4\nmov_imm.u32 r0, 1\nbar.sync 0\nstg.u32 [x], r0";
        assert_eq!(
            lower(meets, LaunchConfig::linear(64, 32), Bounds::Proven),
            (1, 3, 3)
        );
        assert_eq!(
            lower(meets, LaunchConfig::linear(64, 16), Bounds::Proven),
            (1, 4, 4)
        );
        assert_eq!(
            lower(
                meets,
                LaunchConfig {
                    shared_bytes: 64,
                    ..LaunchConfig::linear(64, 16)
                },
                Bounds::Proven
            ),
            (1, 5, 5)
        );
        assert_eq!(
            lower(meets, LaunchConfig::linear(16_000, 16), Bounds::Proven),
            (2, 5, 5)
        );
    }

    #[test]
    fn the_longest_unused_goes_first_from_a_bounded_cache() {
        let cache = ProgramCache::new(2, 2);
        let device = Device::open("cpu").expect("always there");
        let program = add("1.0");
        for (n, expected) in [
            (1, (0, 1, 1)),
            (2, (0, 2, 2)),
            (1, (1, 2, 2)),
            (3, (1, 3, 2)),
            (1, (2, 3, 2)),
            (2, (2, 4, 2)),
        ] {
            cache.run(&bounded(&program, n), &device).expect("compiles");
            assert_eq!(counted(cache.run_counts()), expected, "n = {n}");
        }
        // Sizes do not matter to the code.
        assert_eq!(cache.lowered_counts().misses, 1);
    }

    #[test]
    fn devices_do_not_share_what_is_compiled() {
        let cache = ProgramCache::new(8, 8);
        let (program, devices) = (
            add("1.0"),
            [
                Device::null_with_capacity(1 << 20),
                Device::null_with_capacity(1 << 20),
            ],
        );
        for device in &devices {
            cache.run(&bounded(&program, 4), device).expect("compiles");
        }
        assert_eq!(
            (cache.run_counts().misses, cache.lowered_counts().misses),
            (2, 1)
        );
    }

    /// The predecessor's defect 5: a cache's key omitted the constants, and a second caller got the
    /// first one's sums.
    #[test]
    fn the_key_of_the_cache_has_the_constants_of_the_program() {
        let cache = ProgramCache::new(8, 8);
        let device = Device::open("cpu").expect("always there");
        for (constant, expected) in [("1.0", 3.0f32), ("40.0", 42.0), ("1.0", 3.0)] {
            let program = add(constant);
            let run = cache.run(&bounded(&program, 1), &device).expect("compiles");
            let mut run = run.lock().expect("nothing panicked");
            run.input(BufferIndex(0))
                .copy_from_slice(&2.0f32.to_le_bytes());
            run.run().expect("runs");
            assert_eq!(
                run.output(BufferIndex(0)),
                expected.to_le_bytes(),
                "+ {constant}"
            );
        }
        assert_eq!(
            (counted(cache.run_counts()), counted(cache.lowered_counts())),
            ((1, 2, 2), (0, 2, 2))
        );
    }

    /// The assumptions of a plan and its allowed transformations are part of the key, like its
    /// constants.
    #[test]
    fn the_key_of_the_cache_has_what_was_taken_for_granted() {
        let cache = ProgramCache::new(8, 8);
        let device = Device::open("cpu").expect("always there");
        // y = scale[0] · x in a loop over n elements.
        let text = "buffer x: i32 read\nbuffer scale: i32 read\nbuffer n: u32 read\nbuffer y: i32 write\nldg.u32 r9, [n + 0]\nldg.i32 r1, [scale + 0]\nmov_imm.u64 r4, 4\nmov_imm.u64 r5, 0\n\
                    @l:\nldg.i32 r2, [x + r5]\nmul.i32 r2, r2, r1\nstg.i32 [y + r5], r2\nadd.u64 r5, r5, r4\nloop r9, @l";
        let program = Program::parse(text)
            .and_then(|program| program.check())
            .expect("valid");
        let bounded = program
            .bound(&LaunchConfig::default(), &[8, 4, 4, 8])
            .expect("fits");
        let run = |recognize, scale: i32| {
            let (scale, n) = (scale.to_le_bytes(), 1u32.to_le_bytes());
            let run = cache
                .run_as(
                    &bounded,
                    &device,
                    recognize,
                    &[(BufferIndex(1), &scale), (BufferIndex(2), &n)],
                )
                .expect("compiles");
            let mut run = run.lock().expect("nothing panicked");
            let shape = run.recorded().recognized().shape().name();
            for (index, bytes) in [(0, &[3, 0, 0, 0, 5, 0, 0, 0][..]), (1, &scale), (2, &n)] {
                if !run
                    .recorded()
                    .recognized()
                    .known()
                    .contains(&BufferIndex(index))
                {
                    run.input(BufferIndex(index)).copy_from_slice(bytes);
                }
            }
            run.run().expect("runs");
            (
                shape,
                bytemuck::pod_collect_to_vec::<u8, i32>(run.output(BufferIndex(3))),
            )
        };
        assert_eq!(run(Recognize::Exact, 2), ("map", vec![6, 10]));
        assert_eq!(run(Recognize::Exact, 7), ("map", vec![21, 35]));
        assert_eq!(run(Recognize::Off, 7), ("general", vec![21, 35]));
        assert_eq!(run(Recognize::Exact, 2), ("map", vec![6, 10]));
        assert_eq!(counted(cache.run_counts()), (1, 3, 3));
    }
}

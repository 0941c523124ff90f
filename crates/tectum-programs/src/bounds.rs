//! How faults are handled.

/// How device code handles faults. It always tests that every loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bounds {
    /// Every access is tested, and the first fault is reported.
    Checked,
    /// Every access is tested; a faulting access loads 0 and stores nothing.
    Forced,
    /// No access is tested: for launches that are proven to have no fault.
    Proven,
}

//! The integration tests, in one program: linked once, with one set of threads.

mod api_fuzz;
mod conformance;
mod defects;
mod fnv_collision;
mod stray_kernel;
mod users_kernels;

//! The integration tests, in one program: linked once, with one set of threads.

mod api_fuzz;
mod conformance;
mod defects;
mod devices;
mod files;
mod fnv_collision;
mod power_loss;
mod receipt_schema;
mod route;
mod stray_kernel;

//! The program: everything is in the library, so that tests and benches run what the program runs.

fn main() -> std::process::ExitCode {
    upbeat::cli::run()
}

//! The GPUs that a bundle has before the wrapper gives it any.

use allocation::Render;
use allocation::bundle::Bundle;
use allocation::selection::Pool;

/// Whether the bundle already has a GPU to compute on, from a scheduler, or from a person by a CDI name. A
/// request that the policy does not honour is then met. Other vendors' cards have render nodes too, but no
/// `/dev/kfd`.
pub(crate) fn brings_a_gpu(bundle: &Bundle<'_>) -> bool {
    let devices = bundle.devices().unwrap_or_default();
    let has = |is: &dyn Fn(&str) -> bool| devices.iter().any(|device| is(&device.path));
    has(&|path| path == "/dev/kfd") && has(&|path| path.starts_with('/') && Render::parse(path).is_some())
}

/// The render nodes of the policy's GPUs that the bundle has already.
pub(crate) fn nodes_in(bundle: &Bundle<'_>, pool: &Pool) -> Result<Vec<Render>, allocation::Error> {
    let mut renders = Vec::new();
    for device in bundle.devices()? {
        let render = Render::parse(&device.path).filter(|_| device.path.starts_with('/'));
        renders.extend(render.filter(|render| pool.gpus().iter().any(|gpu| gpu.render == *render)));
    }
    Ok(renders)
}

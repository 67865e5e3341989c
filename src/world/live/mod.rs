//! The live world: kube, the AWS SDK, DNS queries, HTTP, PostgreSQL.
//!
//! Everything here is lazy: [`connect`] only reads files, so a wrong context is found before anything is asked of a server.

mod aws;
mod cloud;
mod data;
mod denied;
mod dns;
mod dns_pace;
mod eks_token;
mod kube;
mod kube_error;
mod kubeconfig;
mod probe;
mod resolve;
mod state_store;
mod terraform;
mod way;

pub use self::dns::{DEFAULT_ROUTE53_RPS, ROUTE53_RPS};
pub use self::state_store::read_state_store;
pub use self::terraform::{FOLDER as TERRAFORM_FOLDER, LiveTerraform};
pub use super::kube::FIELD_MANAGER;

use crate::error::{Error, Kind, Result};
use crate::spec::model::Spec;
use crate::world::World;
use std::path::Path;
use std::sync::Arc;

/// Wall time.
pub struct WorldClock;

impl crate::world::Clock for WorldClock {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

/// The world that a spec names. Reads the kubeconfig (relative to `base`, the spec's folder) but asks no server yet.
/// Neither `KUBECONFIG` nor a current-context decides anything; AWS credentials come from the SDK's chain under the
/// declared profile, and the pins of the plan prove whose account that is.
pub fn connect(spec: &Spec, base: &Path) -> Result<World> {
    // Two TLS providers are in the tree's reach; rustls wants one named. A second call finds it installed.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let (Some(file), Some(context)) = (&spec.blue.kubeconfig, &spec.blue.context) else {
        return Err(Error::new(
            Kind::BadInput,
            "the spec does not say how to reach blue: blue.kubeconfig and blue.context are both needed",
        )
        .remedy("add them; `kops export kubeconfig` writes such a file"));
    };
    let path = base.join(file);
    kubeconfig::read(&path, context)?;
    let ways = &spec.connections;
    let to_blue = way::Way::of("blue", ways.blue.as_ref(), &spec.aws, base)?;
    let to_green = way::Way::of("green", ways.green.as_ref(), &spec.aws, base)?;
    let aws = Arc::new(aws::AwsBase::new(&spec.aws));
    Ok(World {
        blue: Arc::new(kube::LiveKube::new(
            "blue",
            kube::Source::Kubeconfig {
                path,
                context: context.clone(),
            },
            to_blue,
        )),
        green: Arc::new(kube::LiveKube::new(
            "green",
            kube::Source::Eks {
                aws: aws.clone(),
                name: spec.green.name.clone(),
            },
            to_green,
        )),
        dns: Arc::new(dns::LiveDns::new(aws.clone())),
        cloud: Arc::new(cloud::LiveCloud::new(aws, spec)),
        terraform: Arc::new(terraform::LiveTerraform::new(spec, base)),
        data: Arc::new(data::LiveData::new(&spec.data)),
        probe: Arc::new(probe::LiveProbe::new(&spec.probes)?),
        clock: Arc::new(WorldClock),
    })
}

/// Route 53 alone, through this configuration of the SDK, at this many requests a second: for benches and tests that drive the strict layer.
pub fn route_53(
    config: aws_config::SdkConfig,
    requests_per_second: f64,
) -> Arc<dyn crate::world::dns::Dns> {
    let gap = std::time::Duration::from_secs_f64(1.0 / requests_per_second);
    Arc::new(dns::LiveDns::paced(
        Arc::new(aws::AwsBase::given(config)),
        gap,
    ))
}

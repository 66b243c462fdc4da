/// The part of the desired state that an action belongs to. A receipt remembers it for each entry by its name, so that
/// what is there of a component stays while its desired state is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Component {
    Host,
    /// The unit that runs at each start, before engines do.
    Boot,
    /// The unit that divides cards at each start, before the other one.
    PartitionUnit,
    /// The unit that runs all the time.
    Daemon,
    /// The unit that runs the exporter of metrics.
    Exporter,
    /// AMD's packages, and the repositories that they come from.
    Packages,
    /// The wrapper's program, where no package has put it.
    Wrapper,
    /// The wrapper's policy, apart from its program: the policy stays where it is unknown whether this is a worker.
    Policy,
    /// The CDI spec.
    Cdi,
    Docker,
    Concourse,
    /// The modes that `partition set` has written. No apply writes or reverts them.
    Partitions,
}

impl AsRef<str> for Component {
    /// The component's name in receipts, which older versions wrote too: it never changes.
    fn as_ref(&self) -> &str {
        match self {
            Self::Host => "host",
            Self::Boot => "boot",
            Self::PartitionUnit => "partition-unit",
            Self::Daemon => "daemon",
            Self::Exporter => "exporter",
            Self::Packages => "packages",
            Self::Wrapper => "wrapper",
            Self::Policy => "policy",
            // Receipts name no component for the spec since the first version.
            Self::Cdi => "",
            Self::Docker => "docker",
            Self::Concourse => "concourse",
            Self::Partitions => "partitions",
        }
    }
}

//! How a container comes to its GPU: as the policy of this machine lets it.

use allocation::policy::{Ask, Setting, Sharing};
use allocation::request::{Request, VISIBLE_DEVICES};

use super::CanaryContext;
use super::came::CanaryResult;
use super::question::{Granted, Question};

pub(crate) struct Way {
    /// What the engine's command line says for it.
    pub(crate) flags: Vec<String>,
    /// In words.
    pub(crate) told: String,
}

impl Way {
    /// Through the wrapper: by its environment, else by what the policy gives everybody, else by CDI, where the engine
    /// knows it: `cdi` says why not.
    pub(crate) fn through_wrapper(
        context: &CanaryContext<'_>,
        cdi: impl FnOnce() -> Result<(), CanaryResult>,
    ) -> Result<(Question, Self), CanaryResult> {
        let policy = context.policy().map_err(|why| CanaryResult::failed(why, "rocworker apply"))?;
        let ask = |request: Option<&Request>| {
            let asked = policy.as_ref().and_then(|policy| policy.ask(request, Setting::default()).ok());
            asked.map_or((false, false), |ask| (matches!(ask, Ask::Explicit(_)), ask == Ask::Default))
        };
        let is_exclusive = policy.as_ref().is_some_and(|policy| policy.sharing == Sharing::Exclusive);
        let leased = match (context.leased)(context.root) {
            Ok(_) if !is_exclusive => Vec::new(),
            Ok(leased) => leased,
            Err(why) => return Err(CanaryResult::failed(why, "rocworker lease list")),
        };
        let question = |granted| {
            Question::of(context.config, context.facts, granted, &leased).map_err(CanaryResult::Skipped)
        };
        let one = question(Granted::One)?;
        let variable = format!("{VISIBLE_DEVICES}={}", one.name);
        let request = Request::from_env([variable.as_str()]).ok().flatten();
        if request.is_some_and(|request| ask(Some(&request)).0) {
            let told = format!("asked for by {variable}");
            return Ok((one, Self { flags: vec!["--env".to_owned(), variable], told }));
        }
        if ask(None).1 {
            let told = "given by the policy's default".to_owned();
            return Ok((question(Granted::All)?, Self { flags: Vec::new(), told }));
        }
        cdi()?;
        let mut way = Self::by_cdi(&one);
        way.told += ", since the policy lets no container ask";
        Ok((one, way))
    }

    /// By the CDI spec, which the engine reads itself.
    pub(crate) fn by_cdi(question: &Question) -> Self {
        let device = question.device();
        let told = format!("asked for by the CDI name {device}");
        Self { flags: vec!["--device".to_owned(), device], told }
    }
}

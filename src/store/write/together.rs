//! Commits of many contexts in one transaction.

use std::any::Any;
use std::sync::Arc;

use crate::engine::Context;
use crate::runtime::Commit;
use crate::store::write::core::Core;
use crate::store::write::keeper::StoreKeeper;
use crate::support::diag::{Code, Diagnostic, Error};

/// Commits contexts of one store in one transaction.
pub(crate) fn commit_all<'c>(
    core: &Arc<Core>,
    contexts: impl IntoIterator<Item = &'c mut Context>,
) -> Vec<Result<Commit, Error>> {
    let (mut results, mut jobs, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for context in contexts {
        let ours = store_keeper(context).is_some_and(|keeper| Arc::ptr_eq(keeper.core(), core));
        if !ours {
            let message = "the context is not of this store";
            let error = Error::new("", Diagnostic::error(Code::Store, message));
            results.push(Err(error));
            continue;
        }
        let prepared = match context.prepare_commit() {
            Ok(prepared) => prepared,
            Err(error) => {
                results.push(Err(error));
                continue;
            }
        };
        let step = context.step_of(&prepared);
        let job = match store_keeper(context) {
            Some(keeper) => keeper.job(&step),
            None => Err(Error::new("", Diagnostic::error(Code::Store, "no store"))),
        };
        match job {
            Ok(job) => {
                places.push((results.len(), context, prepared));
                jobs.push(job);
                // Replaced below.
                results.push(Ok(Commit::default()));
            }
            Err(error) => results.push(context.end_commit(prepared, Err(error))),
        }
    }
    let kept = core.keep_all(&mut jobs);
    for (((at, context, prepared), job), kept) in places.into_iter().zip(jobs).zip(kept) {
        let kept = match store_keeper(context) {
            Some(keeper) => keeper.ended(job, kept),
            None => Ok(()),
        };
        results[at] = context.end_commit(prepared, kept);
    }
    results
}

/// What keeps the commits of a context, if that is a store.
fn store_keeper(context: &mut Context) -> Option<&mut StoreKeeper> {
    let keeper: &mut dyn Any = context.keeper()?;
    keeper.downcast_mut()
}

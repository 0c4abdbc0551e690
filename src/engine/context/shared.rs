//! A context for asynchronous programs.

use std::panic::resume_unwind;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;

use super::{Context, IntoNode, Message, Request};
use crate::history::Session;
use crate::render::Provider;
use crate::runtime::Commit;
use crate::support::diag::Error;

/// A [`Context`] that many tasks share (feature `tokio`). Cheap to clone.
///
/// One call changes the context at a time, in the order they were made; it runs on a thread for blocking
/// work, so the executor goes on meanwhile. A call that was begun is finished even if its future is
/// dropped. Readers use [`AsyncContext::session`] and wait for nothing.
///
/// ```
/// use pactql::{AsyncContext, Context, Engine, Message, Provider};
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let context = AsyncContext::new(Context::new());
/// context.append(Message::user("Where is my refund?")).await?;
/// let request = context.render(Provider::OpenAi).await?;
/// assert!(request.body.contains("refund"));
/// context.reply(Message::assistant("On its way.")).await?;
/// context.commit().await?;
/// let blocks = Engine::new().rows(&context.session(), "@t0 ^seq .cb")?;
/// assert_eq!(blocks.count(), 2);
/// // Several operations that no other task comes between:
/// let ids = context.with(|context| context.remove(".cb[kind='note']")).await?;
/// assert!(ids.is_empty());
/// # Ok::<(), pactql::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct AsyncContext {
    context: Arc<Mutex<Context>>,
    session: Arc<Session>,
}

impl AsyncContext {
    /// Shares a context.
    #[must_use]
    pub fn new(context: Context) -> Self {
        let session = context.session();
        Self {
            context: Arc::new(Mutex::new(context)),
            session,
        }
    }

    /// The session, for readers. It shows every mutation as soon as it is made.
    pub fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session)
    }

    /// Runs `work` with the context, after the calls made before. Tasks that ask meanwhile wait.
    pub async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Context) -> T + Send + 'static,
    ) -> T {
        let mut context: OwnedMutexGuard<Context> = Arc::clone(&self.context).lock_owned().await;
        match spawn_blocking(move || work(&mut context)).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime is shutting down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// As [`Context::add`].
    pub async fn add(
        &self,
        position: &str,
        node: impl IntoNode + Send + 'static,
    ) -> Result<String, Error> {
        let position = position.to_owned();
        self.with(move |context| context.add(&position, node)).await
    }

    /// As [`Context::append`].
    pub async fn append(&self, message: Message) -> Result<Vec<String>, Error> {
        self.with(|context| context.append(message)).await
    }

    /// As [`Context::reply`].
    pub async fn reply(&self, message: Message) -> Result<Vec<String>, Error> {
        self.with(|context| context.reply(message)).await
    }

    /// As [`Context::begin_reply`].
    pub async fn begin_reply(&self, message: Message) -> Result<Vec<String>, Error> {
        self.with(|context| context.begin_reply(message)).await
    }

    /// As [`Context::render`].
    pub async fn render(&self, provider: Provider) -> Result<Request, Error> {
        self.with(move |context| context.render(provider)).await
    }

    /// Adds text to a block of the cycle in progress, as [`Context::stream`] does. Costs the text; runs on
    /// the task's own thread. Errors as [`Context::stream`].
    pub async fn push_text(&self, id: &str, text: &str) -> Result<(), Error> {
        let mut context = self.context.lock().await;
        context.stream(id)?.push(text);
        Ok(())
    }

    /// As [`Context::commit`].
    pub async fn commit(&self) -> Result<Commit, Error> {
        self.with(Context::commit).await
    }
}

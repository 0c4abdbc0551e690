// The address of what is shown, in the fragment of the URL: every step and block has one.

export const TABS = ['new', 'request', 'changes', 'tokens', 'cache', 'tree', 'beside'] as const;
export type Tab = (typeof TABS)[number];

export interface Address {
  /** The session's name; null in a page that has one inside. */
  session: string | null;
  /** The cycle; null for the newest step. */
  step: string | null;
  tab: Tab;
  block: string | null;
  search: string;
  selector: string;
  /** The run beside it. */
  other: string | null;
}

export function read(hash: string): Address {
  const query = new URLSearchParams(hash.replace(/^#/, ''));
  const tab = query.get('tab') as Tab;
  return {
    session: query.get('session'),
    step: query.get('step'),
    tab: TABS.includes(tab) ? tab : 'new',
    block: query.get('block'),
    search: query.get('search') ?? '',
    selector: query.get('select') ?? '',
    other: query.get('beside'),
  };
}

export function write(address: Address): string {
  const query = new URLSearchParams();
  const put = (name: string, value: string | null) => value && query.set(name, value);
  put('session', address.session);
  put('step', address.step);
  put('tab', address.tab === 'new' ? null : address.tab);
  put('block', address.block);
  put('search', address.search);
  put('select', address.selector);
  put('beside', address.other);
  return '#' + query.toString();
}

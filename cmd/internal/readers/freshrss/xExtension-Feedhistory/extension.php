<?php
declare(strict_types=1);

/**
 * Reads the archives of a history server as if the feeds themselves had pushed them
 * (as WebSub does): ids, enclosures and rules are the reader's own, entries it has stay
 * as they are, and the address of a subscription never changes.
 */
final class FeedhistoryExtension extends Minz_Extension {
	private bool $markRead = false;
	/** @var list<string> */
	public array $report = [];

	#[\Override]
	public function init(): void {
		$this->registerHook('entry_before_insert', [$this, 'beforeInsert']);
	}

	public function beforeInsert(FreshRSS_Entry $entry): FreshRSS_Entry {
		if ($this->markRead) {
			$entry->_isRead(true);
		}
		return $entry;
	}

	#[\Override]
	public function handleConfigureAction(): void {
		if (!Minz_Request::isPost()) {
			return;
		}
		$base = rtrim(Minz_Request::paramString('base'), '/');
		$this->setUserConfiguration(['base' => $base]);
		$this->markRead = !Minz_Request::paramBoolean('unread');
		foreach (FreshRSS_Factory::createFeedDao()->listFeeds() as $feed) {
			$this->fill($feed, $base);
		}
		$this->markRead = false;
	}

	private function fill(FreshRSS_Feed $feed, string $base): void {
		$url = htmlspecialchars_decode($feed->url(), ENT_QUOTES);
		$next = $base . '/feeds/' . substr(hash('sha256', $url), 0, 32) . '/index.atom';
		$documents = [];	// the newest first
		while ($next !== '' && !in_array($next, $documents, true)) {
			$text = $this->get($next);
			if ($text === '') {
				if ($documents !== []) {
					$this->report[] = $feed->name() . ': ' . $next . ' cannot be read; nothing was added';
				}
				return;	// the server does not have this feed
			}
			$documents[] = $next;
			$next = preg_match('/<link rel="prev-archive" href="([^"]+)"/', $text, $found) === 1 ? htmlspecialchars_decode($found[1]) : '';
		}
		$added = 0;
		foreach (array_reverse($documents) as $document) {	// later versions of an entry come later
			$simplePie = customSimplePie();
			$simplePie->enable_cache(false);
			$simplePie->set_raw_data($this->get($document));
			$simplePie->init();
			[, , $new] = FreshRSS_feed_Controller::actualizeFeedsAndCommit($feed->id(), null, null, $simplePie);
			$added += $new;
			$simplePie->__destruct();
		}
		$this->report[] = $feed->name() . ': ' . $added . ' added';
	}

	private function get(string $url): string {
		$curl = curl_init($url);
		curl_setopt_array($curl, [CURLOPT_RETURNTRANSFER => true, CURLOPT_FAILONERROR => true, CURLOPT_TIMEOUT => 120, CURLOPT_ENCODING => '', CURLOPT_FOLLOWLOCATION => true, CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS]);
		$text = curl_exec($curl);
		return is_string($text) ? $text : '';
	}

	public function base(): string {
		return (string)($this->getUserConfigurationValue('base') ?? '');
	}
}

package vocab

// FirstRank is the rank of the format's own element.
const FirstRank = 9

// RSSTextRank is textRank for an element of RSS, or for one outside of RSS that feeds
// use.
func RSSTextRank(what, local string) int {
	switch {
	case local == what && what == "title", local == "description" && what == "summary":
		return FirstRank
	case local == what:
		return 2
	case what == "content" && (local == "body" || local == "fullitem"):
		return 1
	}
	return 0
}

// TextRank is textRank for an element of another vocabulary.
func TextRank(what, space, local string, rss bool) int {
	atom := IsAtom(space) && local == what
	switch {
	case what == "title" && local == "title" && space == DC:
		return 4
	case what == "title" && local == "title" && space == Media:
		return 3
	case what == "summary" && local == "description" && space == Media:
		return 1
	case !rss:
		return 0
	case atom:
		return 2
	case what == "summary" && local == "description" && space == DC:
		return 4
	case what == "summary" && local == "summary" && space == ITunes:
		return 3
	case what == "content" && local == "encoded" && space == Content:
		return FirstRank
	case what == "content" && local == "body" && space == XHTML:
		return 3
	}
	return 0
}

// UpdateRank ranks the extensions with the time of the last change, because RSS 2.0 has no
// such element for items (5005#22). The highest rank counts; 0 means another element.
func UpdateRank(space, local string) int {
	switch space {
	case Atom:
		if local == "updated" {
			return 3
		}
	case DCTerms:
		if local == "modified" {
			return 2
		}
	case DC:
		if local == "date" {
			return 1
		}
	}
	return 0
}

// PublishedRank ranks the extensions with the time an item was published; 0 means another
// element.
func PublishedRank(space, local string) int {
	switch {
	case local == "published" && space == Atom:
		return 3
	case local == "issued" && space == DCTerms:
		return 2
	case local == "created" && space == DCTerms:
		return 1
	}
	return 0
}

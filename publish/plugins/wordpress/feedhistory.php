<?php
/**
 * Plugin Name: Feedhistory
 * Description: An archived feed (RFC 5005) of all posts, at /feed/history/ (/?feed=history): the latest posts, and links to archives, in which every older post is.
 * Version: 1.0
 * Requires at least: 5.8
 * Requires PHP: 7.4
 *
 * A post is entered into a block when it is published, and stays there: a deleted or dated
 * post moves no other. A full block is an archive. The feed has the block that is being
 * filled, the one before it, and the posts that were edited last. The number of posts in a
 * block is 50, or what the filter feedhistory_size returns.
 */

namespace Feedhistory;

defined( 'ABSPATH' ) || exit;

const BLOCK = '_feedhistory_block'; // the block of a post
const STATE = 'feedhistory';        // the number of the block that is being filled, and of its posts

register_activation_hook( __FILE__, function () {
	foreach ( posts( array( 'orderby' => 'date', 'order' => 'ASC' ) ) as $post ) {
		enter( $post );
	}
	feed();
	flush_rewrite_rules();
} );

add_action( 'init', __NAMESPACE__ . '\feed' );
add_action( 'transition_post_status', function ( $new, $old, $post ) {
	if ( 'publish' === $new && 'post' === $post->post_type ) {
		enter( $post );
	}
}, 10, 3 );

function feed() {
	add_feed( 'history', __NAMESPACE__ . '\show' );
}

/** Enters a post into the block that is being filled, unless it has one. */
function enter( $post ) {
	if ( ! add_post_meta( $post->ID, BLOCK, 0, true ) ) {
		return;
	}
	list( $open, $count ) = get_option( STATE, array( 1, 0 ) );
	update_post_meta( $post->ID, BLOCK, $open );
	$count++;
	$full = $count >= max( 1, (int) apply_filters( 'feedhistory_size', 50 ) );
	update_option( STATE, $full ? array( $open + 1, 0 ) : array( $open, $count ) );
}

/** Returns published posts, the last edited first. */
function posts( $query ) {
	return get_posts( $query + array(
		'post_type' => 'post', 'post_status' => 'publish', 'has_password' => false, 'numberposts' => -1, 'orderby' => 'modified', 'order' => 'DESC',
	) );
}

function in_blocks( $first, $last ) {
	return array( 'meta_query' => array( array( 'key' => BLOCK, 'value' => array( $first, $last ), 'type' => 'NUMERIC', 'compare' => 'BETWEEN' ) ) );
}

/** Answers a request for the feed, or for an archive. */
function show() {
	$open  = get_option( STATE, array( 1, 0 ) )[0];
	$block = isset( $_GET['archive'] ) ? (int) $_GET['archive'] : $open; // phpcs:ignore WordPress.Security.NonceVerification
	if ( isset( $_GET['archive'] ) && ( $block < 1 || $block >= $open ) ) { // phpcs:ignore WordPress.Security.NonceVerification
		wp_die( 'There is no such archive.', '', array( 'response' => 404 ) );
	}
	$links = array( 'self' => $block < $open ? $block : 0 );
	if ( $block > 1 ) {
		$links['prev-archive'] = $block - 1;
	}
	if ( $block < $open ) {
		$posts            = posts( in_blocks( $block, $block ) );
		$links['current'] = 0;
		if ( $block + 1 < $open ) {
			$links['next-archive'] = $block + 1;
		}
	} else {
		$posts = posts( in_blocks( max( 1, $open - 1 ), $open ) );
		$size  = max( 1, (int) apply_filters( 'feedhistory_size', 50 ) );
		$shown = wp_list_pluck( $posts, 'ID' );
		foreach ( posts( in_blocks( 1, $open - 2 ) + array( 'numberposts' => $size ) ) as $post ) {
			if ( $post->post_modified_gmt > $post->post_date_gmt && ! in_array( $post->ID, $shown, true ) ) {
				$posts[] = $post;
			}
		}
	}
	write( $posts, $links, $block < $open );
}

function address( $block ) {
	return $block ? add_query_arg( 'archive', $block, get_feed_link( 'history' ) ) : get_feed_link( 'history' );
}

function updated( $post ) {
	return mysql2date( 'Y-m-d\TH:i:s\Z', max( $post->post_modified_gmt, $post->post_date_gmt ), false );
}

function text( $string ) {
	return htmlspecialchars( $string, ENT_XML1 | ENT_QUOTES | ENT_SUBSTITUTE | ENT_DISALLOWED, 'UTF-8' );
}

function write( $list, $links, $archive ) {
	header( 'Content-Type: application/atom+xml; charset=UTF-8' );
	header( 'Cache-Control: max-age=600' );
	$times = array_map( __NAMESPACE__ . '\updated', $list );
	echo '<?xml version="1.0" encoding="UTF-8"?>', "\n";
	echo '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0">', "\n";
	echo '<id>', text( address( 0 ) ), "</id>\n<title>", text( wp_specialchars_decode( get_bloginfo( 'name' ), ENT_QUOTES ) ), "</title>\n";
	echo '<updated>', $times ? max( $times ) : '1970-01-01T00:00:00Z', "</updated>\n", $archive ? "<fh:archive/>\n" : '';
	foreach ( $links as $rel => $block ) {
		echo '<link rel="', $rel, '" href="', text( address( $block ) ), "\"/>\n";
	}
	foreach ( $list as $post ) {
		$GLOBALS['post'] = $post; // phpcs:ignore WordPress.WP.GlobalVariablesOverride
		setup_postdata( $post );
		$url = get_permalink( $post );
		echo '<entry><id>', text( get_the_guid( $post ) ), '</id><title type="html">', text( get_the_title( $post ) ), '</title>';
		echo '<author><name>', text( get_the_author() ?: get_bloginfo( 'name', 'raw' ) ), '</name></author>';
		echo '<published>', mysql2date( 'Y-m-d\TH:i:s\Z', $post->post_date_gmt, false ), '</published><updated>', updated( $post ), '</updated>';
		echo '<link rel="alternate" href="', text( $url ), '"/><content type="html" xml:base="', text( $url ), '">', text( get_the_content_feed( 'atom' ) ), "</content></entry>\n";
	}
	wp_reset_postdata();
	echo "</feed>\n";
}
